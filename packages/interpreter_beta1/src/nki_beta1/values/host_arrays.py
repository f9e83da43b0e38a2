"""NumPy's functions do not take values of the language; its numbers combine with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

import numpy as np

from neuroncore.errors import UnsupportedError
from nki_beta1.values.special_methods import UnsupportedMethods

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
