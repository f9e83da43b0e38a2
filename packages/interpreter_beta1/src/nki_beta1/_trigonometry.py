"""nl.sin, cos and tan: good for any argument, by reducing it to [-π, π] first.

nisa.activation does not reduce: outside [-π, π] its sin is garbage on hardware.
"""

from __future__ import annotations

from math import pi
from typing import Any

from nki_beta1 import _elementwise as elementwise
from nki_beta1._create import refuse_unknown
from nki_dtypes import float32, int32

# 2π in three parts: the first two have 8 and 9 bits, so that their products with the number of
# turns are exact in float32 up to 2^15 turns.
_TURN = (6.28125, 507 / 2**18, 2 * pi - 6.28125 - 507 / 2**18)
_PI = 3.1415925  # the largest float32 below π


def sin(x: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
    """sin(x), with the argument reduced to [-π, π] first (nisa.activation does not)."""
    refuse_unknown("sin", unknown)
    kind = x.dtype if dtype is None else dtype
    within = elementwise.scalar_op(
        _rest(x, mask), "maximum", -_PI, float32, mask, op1="minimum", operand1=_PI
    )
    return elementwise.unary("sin", within, kind, mask)


def cos(x: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
    """cos(x) = sin(π/2 - |r|), where r is x less its whole turns."""
    refuse_unknown("cos", unknown)
    kind = x.dtype if dtype is None else dtype
    size = elementwise.unary("abs", _rest(x, mask), float32, mask)
    shifted = elementwise.scalar_op(size, "subtract", pi / 2, float32, mask, reverse0=True)
    return elementwise.unary("sin", shifted, kind, mask)


def tan(x: Any, *, dtype: Any = None, mask: Any = None, **unknown: Any) -> Any:
    """sin(x) / cos(x)"""
    refuse_unknown("tan", unknown)
    kind = x.dtype if dtype is None else dtype
    above, below = sin(x, dtype=float32, mask=mask), cos(x, dtype=float32, mask=mask)
    return elementwise.binary("divide", above, below, kind, mask)


def _rest(x: Any, mask: Any) -> Any:
    """x less the whole turns that are nearest, in float32."""
    turns = elementwise.scalar_op(x, "multiply", 1 / (2 * pi), int32, mask)
    rest = x
    for part in _TURN:
        step = elementwise.scalar_op(turns, "multiply", part, float32, mask)
        rest = elementwise.binary("subtract", rest, step, float32, mask)
    return rest
