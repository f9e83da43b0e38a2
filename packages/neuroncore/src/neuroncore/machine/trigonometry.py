"""sin, cos and tan of any argument, made of instructions: it is reduced to [-π, π] first.

nisa.activation does not reduce: outside [-π, π] its sin is garbage on hardware. Shared by the
languages, whose functions on tiles are called alike.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Any, Protocol

from nki_dtypes import float32, int32

# 2π in three parts: the first two have 8 and 9 bits, so that their products with the number of
# turns are exact in float32 up to 2^15 turns.
_TURN = (6.28125, 507 / 2**18, 2 * pi - 6.28125 - 507 / 2**18)
_PI = 3.1415925  # the largest float32 below π


class Arithmetic(Protocol):
    """The operations of a language: each gives a new tile of dtype `dtype`."""

    def unary(self, name: str, x: Any, dtype: Any) -> Any:
        """An activation function."""

    def binary(self, name: str, x: Any, y: Any, dtype: Any) -> Any:
        """An operation of two tiles."""

    def scalar(self, x: Any, op: str, operand: Any, dtype: Any, **more: Any) -> Any:
        """An operation of a tile and a number, and perhaps a second: tensor_scalar."""


def sin(tiles: Arithmetic, x: Any, dtype: Any) -> Any:
    """sin(x)"""
    within = tiles.scalar(_rest(tiles, x), "maximum", -_PI, float32, op1="minimum", operand1=_PI)
    return tiles.unary("sin", within, dtype)


def cos(tiles: Arithmetic, x: Any, dtype: Any) -> Any:
    """cos(x) = sin(π/2 - |r|), where r is x less its whole turns."""
    size = tiles.unary("abs", _rest(tiles, x), float32)
    shifted = tiles.scalar(size, "subtract", pi / 2, float32, reverse0=True)
    return tiles.unary("sin", shifted, dtype)


def tan(tiles: Arithmetic, x: Any, dtype: Any) -> Any:
    """sin(x) / cos(x)"""
    return tiles.binary("divide", sin(tiles, x, float32), cos(tiles, x, float32), dtype)


TRIGONOMETRY: dict[str, Callable[[Arithmetic, Any, Any], Any]] = {
    "sin": sin,
    "cos": cos,
    "tan": tan,
}


def _rest(tiles: Arithmetic, x: Any) -> Any:
    """x less the whole turns that are nearest, in float32."""
    turns = tiles.scalar(x, "multiply", 1 / (2 * pi), int32)
    rest = x
    for part in _TURN:
        step = tiles.scalar(turns, "multiply", part, float32)
        rest = tiles.binary("subtract", rest, step, float32)
    return rest
