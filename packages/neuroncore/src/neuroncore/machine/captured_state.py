"""Python objects that the body of a device loop reaches without arguments, and their changes.

A body is run once by Python and in every turn by the device, so that a counter or a list that it
changes has the value of one run. `CapturedState` notes variables of outer functions and globals
before a body is run; the objects in them are compared to a depth of `DEPTH`, up to `MOST` values.
A random generator is one of them, also where a body calls a function of a module that draws from
it. Functions whose value is another one in each call, such as clocks, change nothing: a body that
names one is enough.
"""

from __future__ import annotations

import dis
import pickle
import random
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import attrgetter, length_hint
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from neuroncore.errors import OUR_PACKAGES
from neuroncore.source_location import Place, place_in

DEPTH = 4
MOST = 2000
_ATOMS = (int, float, complex, str, bytes, bool, type(None))
_ABSENT = "nothing"
_SHARED_GENERATORS = {"random": "random", "numpy.random": "rand", "numpy": "random.rand"}
"""Modules that draw from a generator of their own: a function that is a method of it."""
_GENERATOR_MODULES = ("random", "numpy.random")
CLOCKS = {
    "time.time", "time.time_ns", "time.monotonic", "time.monotonic_ns", "time.perf_counter",
    "time.perf_counter_ns", "time.process_time", "time.process_time_ns", "posix.urandom",
    "nt.urandom", "uuid.uuid1", "uuid.uuid4", "datetime.datetime.now",
    "datetime.datetime.utcnow", "datetime.date.today",
    "secrets.token_bytes", "secrets.token_hex", "secrets.randbelow",
}  # fmt: skip
"""Functions whose value is another one in each call."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """A change by a body to a variable of the kernel, or to an element of one."""

    what: str
    got: str
    place: Place | None


class CapturedState:
    """The variables that `body` captures, at present."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self._functions = list(_functions(body))
        self._object = list(_object_of(body))
        self._before = self._values()

    def _values(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for name, value in (*self._object, *_variables(self._functions)):
            _note(found, name, value, DEPTH)
        return found

    def changes(self) -> list[StateChange]:
        """Differences from the beginning; of an object that grew the object, not its elements.
        Then the functions that the body names and whose value differs from call to call.
        """
        before, after = self._before, self._values()
        differing = [n for n in before.keys() | after.keys() if before.get(n) != after.get(n)]
        names = sorted(n for n in differing if not any(_is_part(n, o) for o in differing))
        return [
            StateChange(
                f"{n} is changed",
                f"{_shown(before, n)} before the loop, {_shown(after, n)} after it",
                self._place(_variable(n)),
            )
            for n in names
        ] + [
            StateChange(
                f"{n}() is called", "one value for all turns", self._place(n.partition(".")[0])
            )
            for n in sorted(set(_clocks(self._functions)))
        ]

    def _place(self, variable: str) -> Place | None:
        """The line that changes a variable, as far as the code shows it."""
        ranked = [
            found
            for function in self._functions
            for code in _codes(function.__code__)
            for found in _uses(code, variable)
        ]
        if not ranked:
            return None
        _, code, offset = min(ranked, key=lambda found: found[0])
        return place_in(code, offset)


# -- what a function captures ---------------------------------------------------------------------


def _functions(body: Any, seen: set[int] | None = None) -> Iterator[FunctionType]:
    """The function, and the functions of the kernel that it captures."""
    seen = set() if seen is None else seen
    while isinstance(body, partial):
        body = body.func
    if _generator_of(body) is not None:
        return
    body = getattr(body, "__func__", getattr(body, "function", body))
    if not isinstance(body, FunctionType) or id(body) in seen or _is_ours(body):
        return
    seen.add(id(body))
    yield body
    for _, value in _variables([body]):
        yield from _functions(value, seen)


def _object_of(body: Any) -> Iterator[tuple[str, Any]]:
    """The object of a method, under the name that the method has for it."""
    if isinstance(body, MethodType) and isinstance(body.__func__, FunctionType):
        yield body.__func__.__code__.co_varnames[0], body.__self__


def _variables(functions: Sequence[FunctionType]) -> Iterator[tuple[str, Any]]:
    """Variables of outer functions, and globals, by name."""
    for function in functions:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
        for name, cell in cells:
            try:
                yield name, cell.cell_contents
            except ValueError:  # not set yet
                continue
        names = {name for code in _codes(function.__code__) for name in code.co_names}
        for name in sorted(names & function.__globals__.keys()):
            yield name, function.__globals__[name]
        for name, (module, *member) in _imports(function.__code__).items():
            found = sys.modules.get(module)
            yield name, getattr(found, member[0], None) if member else found


def _clocks(functions: Sequence[FunctionType]) -> Iterator[str]:
    """How functions write the ones of `CLOCKS` that they name: `time.time`, `now`."""
    roots = dict(_variables(functions))
    for path in {path for function in functions for path in _paths(function.__code__)}:
        value = roots.get(path[0])
        for name in path[1:]:
            value = _member(value, name)
        owner = getattr(value, "__objclass__", getattr(value, "__self__", None))
        module = getattr(value, "__module__", None) or getattr(owner, "__module__", "")
        if f"{module}.{getattr(value, '__qualname__', '')}" in CLOCKS:
            yield ".".join(path)


def _member(value: Any, name: str) -> Any:
    """The value of a name in a module or class, its bases included; None for all else."""
    if not isinstance(value, (ModuleType, type)) or _is_ours(value):
        return None
    holders = value.__mro__ if isinstance(value, type) else (value,)
    return next((vars(holder)[name] for holder in holders if name in vars(holder)), None)


@lru_cache(maxsize=512)
def _imports(code: CodeType) -> dict[str, tuple[str, ...]]:
    """The variables that code imports: a module, or a module and its member."""
    found: dict[str, tuple[str, ...]] = {}
    for one in _codes(code):
        origin: tuple[str, ...] = ()
        for i in dis.get_instructions(one):
            if i.opname == "IMPORT_NAME":
                origin = (i.argval,)
            elif i.opname == "IMPORT_FROM":
                origin = (origin[0], i.argval)
            elif i.opname.startswith("STORE_") and origin:
                found.setdefault(i.argval, origin)
                origin = origin[:1] if len(origin) > 1 else ()
            elif i.opname == "POP_TOP":
                origin = ()
    return found


@lru_cache(maxsize=512)
def _paths(code: CodeType) -> frozenset[tuple[str, ...]]:
    """The variables of others that code reads, each with the attributes that follow it."""
    found: set[tuple[str, ...]] = set()
    path: tuple[str, ...] = ()
    imported = set(_imports(code))
    for one in _codes(code):
        for i in dis.get_instructions(one):
            is_attribute = i.opname in ("LOAD_ATTR", "LOAD_METHOD") and path
            is_root = i.opname in ("LOAD_GLOBAL", "LOAD_DEREF") or i.argval in imported
            path = (*(path if is_attribute else ()), i.argval) if is_attribute or is_root else ()
            found.add(path)
    return frozenset(found - {()})


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _is_ours(value: Any) -> bool:
    module = getattr(value, "__module__", None) or ""
    return module.partition(".")[0] in OUR_PACKAGES


def _note(found: dict[str, object], name: str, value: Any, depth: int) -> None:
    """Write down a value and what it holds, each under its path."""
    generator = _generator_of(value)
    if generator is not None:
        state = zlib.crc32(pickle.dumps(generator))
        found[f"{name} (a random generator)"] = (type(generator), f"state {state:08x}", None)
        return
    if len(found) >= MOST or isinstance(value, (ModuleType, type)):
        return
    if isinstance(value, _ATOMS):
        found[name] = (type(value), repr(value))
        return
    found[name] = (type(value), id(value), _count(value))
    if depth == 0 or _is_ours(type(value)) or isinstance(value, (FunctionType, MethodType)):
        return
    for path, element in _elements(value):
        _note(found, f"{name}{path}", element, depth - 1)


def _generator_of(value: Any) -> Any:
    """The random generator that a value is, or that a module or function draws from."""
    if isinstance(value, ModuleType):
        method = _SHARED_GENERATORS.get(value.__name__)
        value = attrgetter(method)(value) if method else None
    value = getattr(value, "__self__", value)
    kind = type(value)
    is_generator = kind.__module__.startswith(_GENERATOR_MODULES) and hasattr(value, "random")
    return value if is_generator and not isinstance(value, random.SystemRandom) else None


def _count(value: Any) -> int | None:
    """How many elements it has, or has still to give."""
    if isinstance(value, (Mapping, Set, Sequence)):
        return len(value)
    return length_hint(value, -1) if isinstance(value, Iterator) else None


def _elements(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", element) for key, element in value.items())
    elif isinstance(value, Set):
        yield from ((f"{{{element!r}}}", None) for element in value)
    elif isinstance(value, Sequence):
        yield from ((f"[{i}]", element) for i, element in enumerate(value))
    else:
        yield from ((f".{name}", element) for name, element in _attributes(value).items())


def _attributes(value: Any) -> dict[str, Any]:
    own = getattr(value, "__dict__", None)
    return own if type(own) is dict else {}


def _variable(name: str) -> str:
    return re.split(r"[\[.{ ]", name, maxsplit=1)[0]


def _is_part(name: str, other: str) -> bool:
    return name != other and name.startswith(other) and name[len(other)] in ".[{"


def _shown(values: dict[str, object], name: str) -> str:
    held: Any = values.get(name)
    if held is None:
        return _ABSENT
    if isinstance(held[1], str):
        return held[1]
    return f"a {held[0].__name__}" + ("" if held[2] is None else f" of {held[2]}")


_SETS = {"STORE_DEREF", "STORE_GLOBAL", "DELETE_DEREF", "DELETE_GLOBAL"}
_WRITES = {"STORE_SUBSCR", "STORE_ATTR", "DELETE_SUBSCR", "DELETE_ATTR"}


def _uses(code: CodeType, variable: str) -> Iterator[tuple[int, CodeType, int]]:
    """Where code names a variable, with a rank: 0 sets it, 1 in a line that writes into an object,
    2 elsewhere."""
    instructions = list(dis.get_instructions(code))
    writing = {i.positions.lineno for i in instructions if i.opname in _WRITES and i.positions}
    for i in instructions:
        if i.argval != variable or not i.opname.startswith(("LOAD_", "STORE_", "DELETE_")):
            continue
        line = i.positions.lineno if i.positions else None
        rank = 0 if i.opname in _SETS else 1 if line in writing else 2
        yield rank, code, i.offset
