"""Python's special methods and NumPy's functions without a meaning in NKI: errors.

Python's defaults are about the object, not about its elements: `mask == 3` is False,
`reversed(tile)` gives rows, `bool(access)` is True. A class of the language defines the methods
that its values support; every other method in `UNSUPPORTED` raises an error. NumPy's functions do
not take values of the language; its numbers combine with them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Never

import numpy as np

from neuroncore.errors import AccessError, KernelError, UnsupportedError
from nki_beta1.values.frames import is_of_a_library, is_ours

WORDS = {
    "Tile": "a tile",
    "Access": "an access to a tile",
    "Indirect": "an access to a tile",
    "Index": "an index expression",
    "Offset": "an index that the device moves",
    "Mask": "a mask",
    "Blocks": "a tensor with block dimensions",
    "Grid": "an nl.mgrid",
    "LoopRange": "a range of a loop",
    "MemorySpace": "a memory",
    "Engine": "an engine",
    "GridDim": "an axis of a launch grid",
}
"""The name of a value's class → what it is."""


def described(value: Any) -> str:
    """A value's kind in words: "a tile", "None", "a list"."""
    kind = type(value).__name__
    article = "an" if kind[0].lower() in "aeiou" else "a"
    return "None" if value is None else WORDS.get(kind) or f"{article} {kind}"


OPERATORS = "NKI 0.1: tensors and operators"
OPERAND = "arrays become tensors as arguments of the kernel"

_ON_DEVICE = (
    "its elements are known only on the device: functions of nl compute on them; loop bounds, "
    "shapes and indices are compile-time ints"
)
_INSTEAD = {
    "Index": "it represents many ints: use it in brackets, in other index expressions, in masks",
    "Mask": "combine masks with &, | and ~, and pass them as mask=",
    "Offset": "the device adds it up: use it in brackets, or as an operand of functions of nl",
    "Blocks": "name a block first: t[b] is a tile",
    "Grid": "name an axis first: g.p, or g[0]",
    "LoopRange": "it is for loops: its numbers are ints, of which expressions are made",
}
"""What to do with a value instead, by the name of its class; tensors hold what a device has."""


class NoAttributeError(AccessError, AttributeError):
    """A name that a value of the language does not have."""


def reject(value: Any, what: str, kind: type[KernelError] = UnsupportedError) -> Never:
    """Raise that NKI does not have this for a value."""
    hint = _INSTEAD.get(type(value).__name__, _ON_DEVICE)
    raise kind(what, got=repr(value)[:80], hint=hint, rule=OPERATORS)


def reject_equality(value: Any, symbol: str, other: Any) -> Any:
    """NotImplemented for None, to which nothing is equal; for others raise UnsupportedError."""
    if other is None:
        return NotImplemented
    raise UnsupportedError(
        f"{described(value)} {symbol} {described(other)} is not an operation",
        expected=_COMPARED.get(type(value).__name__, "a tile and a tile or number"),
        hint=OPERAND if type(other).__module__ == "numpy" else None,
        rule=OPERATORS,
    )


_COMPARED = {
    "Mask": "masks combined with &, |, ^ and ~; index expressions are compared",
    "Blocks": "a block, such as t[0], and a tile or number",
    "Grid": "an axis, such as g.p, and an index expression",
    "LoopRange": "a range of a loop, or range(…)",
}
"""What can be compared instead, by the name of the class; tiles can."""


def _rejected(what: str, kind: type[KernelError] = UnsupportedError) -> Callable[..., Any]:
    def special(self: Any, *_: Any, **__: Any) -> Never:
        asking = sys._getframe(1)
        if is_ours(asking) or is_of_a_library(asking):  # the argument that this came by is wrong
            raise TypeError(what.format(f"'{type(self).__name__}' object"))
        reject(self, what.format(described(self)), kind)

    return special


def _equality(symbol: str) -> Callable[..., Any]:
    def special(self: Any, other: Any) -> Any:
        return reject_equality(self, symbol, other)

    return special


def _format(self: Any, spec: str) -> str:
    """`f"{tile}"` is its text; a width or a number's format is an error."""
    return str(self) if not spec else reject(self, f"{described(self)} in the format {spec!r}")


_NUMBER = _rejected("{} as a Python number")
_IN_WITH = _rejected("{} in a with statement")

UNSUPPORTED: dict[str, Callable[..., Any]] = {
    "__int__": _NUMBER, "__float__": _NUMBER, "__complex__": _NUMBER, "__index__": _NUMBER,
    "__round__": _rejected("round() of {}"),
    "__trunc__": _rejected("math.trunc() of {}"),
    "__floor__": _rejected("math.floor() of {}"),
    "__ceil__": _rejected("math.ceil() of {}"),
    "__divmod__": _rejected("divmod() of {}"), "__rdivmod__": _rejected("divmod() of {}"),
    "__bool__": _rejected("{} has no truth value", AccessError),
    "__iter__": _rejected("{} is not iterable", AccessError),
    "__reversed__": _rejected("{} is not iterable", AccessError),
    "__setitem__": _rejected("elements of {} are not assigned"),
    "__delitem__": _rejected("elements of {} cannot be deleted"),
    "__format__": _format,
    "__reduce_ex__": _rejected("a Python copy of {}"),
    "__enter__": _IN_WITH, "__exit__": _IN_WITH,
    "__aenter__": _IN_WITH, "__aexit__": _IN_WITH,
    "__await__": _rejected("await of {}"),
    "__eq__": _equality("=="), "__ne__": _equality("!="),
}  # fmt: skip
"""By name: what a value has of it whose class does not define it."""


class UnsupportedMethods:
    """Base class of the values of the language: methods that they do not define are errors."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]


for _name, _method in UNSUPPORTED.items():
    setattr(UnsupportedMethods, _name, _method)


_ABOUT_SHAPE: dict[Any, Callable[[Any], Any]] = {
    np.shape: lambda tile: tile.shape,
    np.ndim: lambda tile: tile.ndim,
    np.size: lambda tile: tile.size,
}
"""Functions whose answer needs no elements."""

HINT = "NumPy computes on the host: use the function of nl with that meaning"
RULE = "NKI 0.1: nki.language"


class NotAnArray(UnsupportedMethods):
    """A value of the language that NumPy must not take for a sequence of numbers.

    `np.float32(2) * tile` is the tile's operator; `np.sum(tile)` and `np.asarray(tile)` are
    errors (`np.exp(tile)` by NumPy itself, because of `__array_ufunc__`).
    """

    __slots__ = ()
    __array_ufunc__ = None

    def __array_function__(
        self, function: Any, _types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        about = _ABOUT_SHAPE.get(function)
        return _reject(f"np.{function.__name__}") if about is None else about(*args, **kwargs)

    def __array__(self, *_: Any, **__: Any) -> Never:
        _reject("a NumPy array")


def _reject(what: str) -> Never:
    raise UnsupportedError(
        f"{what} of a value that is known only on the device",
        expected="functions of nl and nisa",
        hint=HINT,
        rule=RULE,
    )
