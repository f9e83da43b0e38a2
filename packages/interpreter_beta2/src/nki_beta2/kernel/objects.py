"""NKIObject: the base of the classes that kernel code may define."""

from __future__ import annotations

from dataclasses import MISSING, Field
from functools import cache
from types import FunctionType
from typing import Any, ClassVar, get_origin

from neuroncore.errors import SignatureError
from neuroncore.instructions import warn_at_kernel
from neuroncore.surface import version_tuple

_EQUALITY = "NKI 0.7 migration guide: == on classes is Python's"
_CONSTRUCTORS = "NKI 0.7: kernels are Python, and so are the constructors of their classes"
_MADE_BY_DATACLASS = "<string>"
"""The file of a function that @dataclass wrote."""


class NKIObject:
    """Base of the classes that kernel code may define."""


class _TracedObject(NKIObject):
    """NKIObject from 0.7 on: a class of Python, compared as Python compares.

    Without an `__eq__` of its own, and unless it is a dataclass, an object equals itself alone; up
    to 0.6 equal fields made two objects equal. Each such comparison is a warning.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if (args or kwargs) and cls.__init__ is object.__init__:
            raise SignatureError(
                f"{cls.__name__} has no constructor that takes fields",
                expected=f"{cls.__name__}(), or a class with @dataclass or an __init__",
                got=", ".join([*map(repr, args), *(f"{n}=…" for n in kwargs)])[:80],
                hint="write @dataclass above the class; up to 0.6 the compiler made constructors",
                rule=_CONSTRUCTORS,
            )  # fmt: skip
        return super().__new__(cls)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is type(other):
            same = "equal" if vars(self) == vars(other) else "unequal"
            warn_at_kernel(
                f"== of two {type(self).__name__} objects is False: they are compared by identity; "
                f"up to 0.6 their {same} fields made it {same == 'equal'}. Give the class an "
                f"__eq__ or @dataclass, or compare with `is` [{_EQUALITY}]"
            )
        return NotImplemented

    __hash__ = object.__hash__


class _ParsedObject(NKIObject):
    """NKIObject up to 0.6: the compiler writes the constructor and compares fields.

    A class that has no `__init__` of its own takes its fields, whether it is a dataclass or not:
    annotated names and names with a value, in order (where there are both, the annotated ones) or
    by name. A field without value may be left out; the object then lacks it. `__post_init__` is
    called last.
    Source: Python subset of the parser frontend (0.2 to 0.6).
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__init__ is object.__init__:
            cls.__init__ = _construct

    def __new__(cls, *args: Any, **kwargs: Any) -> _ParsedObject:
        code = getattr(cls.__init__, "__code__", None)  # @dataclass came after __init_subclass__
        if code is not None and code.co_filename == _MADE_BY_DATACLASS:
            cls.__init__ = _construct
        return super().__new__(cls)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = object.__hash__


def _construct(self: Any, *args: Any, **kwargs: Any) -> None:
    """Set the fields from what is given, else from their defaults."""
    fields = _fields(type(self))
    given = _given(type(self), fields, args, kwargs)
    for name, default in fields.items():
        value = given[name] if name in given else _made(default)
        if value is not MISSING:
            object.__setattr__(self, name, value)
    after = getattr(self, "__post_init__", None)
    if after is not None:
        after()


def _given(
    cls: type, fields: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    """The arguments by field. Raises TypeError as Python does for parameters."""
    ordered = [name for name in fields if name in _annotated(cls)] or list(fields)
    if len(args) > len(ordered):
        count = f"{len(ordered)} fields by position but {len(args)} were given"
        raise TypeError(f"{cls.__name__}() takes {count}")
    given = dict(zip(ordered, args, strict=False))
    for name in kwargs:
        if name not in fields:
            raise TypeError(f"{cls.__name__}() got an unexpected keyword argument {name!r}")
        if name in given:
            raise TypeError(f"{cls.__name__}() got multiple values for argument {name!r}")
    return given | kwargs


def _made(default: Any) -> Any:
    if not isinstance(default, Field):
        return default
    return default.default if default.default_factory is MISSING else default.default_factory()


def _fields(cls: type) -> dict[str, Any]:
    """The fields of a class in order, its bases' first, each with its default or MISSING."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[: -len(_ParsedObject.__mro__)]):
        found |= _own_fields(base)
    return found


def _annotated(cls: type) -> set[str]:
    return {name for base in cls.__mro__ for name in vars(base).get("__annotations__", {})}


def _own_fields(cls: type) -> dict[str, Any]:
    own = vars(cls)
    known: dict[str, Field[Any]] = own.get("__dataclass_fields__", {})
    annotated = [n for n, t in own.get("__annotations__", {}).items() if not _of_class(t)]
    valued = [n for n, v in own.items() if not n.startswith("__") and not _is_member(v)]
    names = dict.fromkeys([*annotated, *valued])
    return {name: known[name] if name in known else own.get(name, MISSING) for name in names}


def _of_class(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return annotation.startswith(("ClassVar", "typing.ClassVar"))
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _is_member(value: Any) -> bool:
    """Whether a name of a class is a method or another class, no field."""
    return isinstance(value, (FunctionType, staticmethod, classmethod, property, type))


@cache
def object_class(version: str) -> type[NKIObject]:
    """NKIObject of a version: from 0.7 on kernel code is Python, and so are its classes."""
    base = _TracedObject if version_tuple(version) >= (0, 7) else _ParsedObject
    name = {"__module__": "nki.language", "__qualname__": "NKIObject", "__doc__": NKIObject.__doc__}
    return type("NKIObject", (base,), name)
