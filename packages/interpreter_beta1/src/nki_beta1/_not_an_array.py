"""NumPy's functions do not compute on values of the language; its numbers stand beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

import numpy as np

from neuroncore.errors import UnsupportedError

_ABOUT_SHAPE: dict[Any, Callable[[Any], Any]] = {
    np.shape: lambda tile: tile.shape,
    np.ndim: lambda tile: tile.ndim,
    np.size: lambda tile: tile.size,
}
"""Functions whose answer needs no elements."""

HINT = "NumPy computes on the host: use the function of nl with that meaning"
OPERAND = "arrays become tensors as arguments of the kernel"
RULE = "NKI 0.1: nki.language"
OPERATORS = "NKI 0.1: tensors and operators"


class NotAnArray:
    """A value of the language that NumPy must not take for a sequence of numbers.

    `np.float32(2) * tile` is the tile's operator; `np.sum(tile)` and `np.asarray(tile)` are refused
    (`np.exp(tile)` by NumPy itself, because of `__array_ufunc__`).
    """

    __slots__ = ()
    __array_ufunc__ = None

    def __array_function__(
        self, function: Any, _types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        about = _ABOUT_SHAPE.get(function)
        return _refuse(f"np.{function.__name__}") if about is None else about(*args, **kwargs)

    def __delitem__(self, _key: Any) -> Never:
        raise UnsupportedError(
            "elements of a tensor cannot be deleted",
            expected="t[…] = value, or a smaller tensor that the rest is copied to",
            rule=RULE,
        )

    def __array__(self, *_: Any, **__: Any) -> Never:
        _refuse("a NumPy array")


def _refuse(what: str) -> Never:
    raise UnsupportedError(
        f"{what} of a value that only the device knows",
        expected="functions of nl and nisa",
        hint=HINT,
        rule=RULE,
    )


def refuse_sequence(symbol: str, other: Any) -> Any:
    """Raise UnsupportedError for `tile == [1]`, where Python would answer; else NotImplemented."""
    if not isinstance(other, (np.ndarray, list, tuple)):
        return NotImplemented
    raise UnsupportedError(
        f"a tile {symbol} a {type(other).__name__} is not an operation",
        expected="a tile and a tile or number",
        hint=OPERAND if isinstance(other, np.ndarray) else None,
        rule=OPERATORS,
    )
