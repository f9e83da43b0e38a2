"""Transcendental functions and roots of floats."""

from __future__ import annotations

from math import pi

import numpy as np

from neuroncore.activations import ACTIVATIONS
from nkigen_lite.ops._formula import Expr, choose
from nkigen_lite.ops._record import (
    FLOAT_ONLY,
    Engine,
    EngineOp,
    ErrorBound,
    Meaning,
    Op,
    activation,
    elementwise,
)
from nkigen_lite.ops.rounding import nearest

_ENGINE = ErrorBound(4)
"""NumPy's own float32 functions, which represent the engines', are within 4 ulps."""
_ANGLE = ErrorBound(3e-7)
"""Absolute, of results up to 1."""


def _in_float64(name: str) -> Meaning:
    """A function of an engine's table: exact, then rounded; its formula loses digits in float32."""
    function = ACTIVATIONS[name].function
    return lambda x: function(x.astype(np.float64))


def _rsqrt(x: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(x)


def _reciprocal(x: np.ndarray) -> np.ndarray:
    return 1 / x


ENGINE_FUNCTIONS: tuple[Op, ...] = (
    activation("exp", np.exp, _ENGINE, numpy=("exp",)),
    activation("log", np.log, _ENGINE, numpy=("log",)),
    activation("sqrt", np.sqrt, ErrorBound(0.5, 0.5), numpy=("sqrt",)),
    activation("rsqrt", _rsqrt, ErrorBound(1.5)),
    activation("tanh", np.tanh, _ENGINE, numpy=("tanh",)),
    activation("sigmoid", _in_float64("sigmoid"), ErrorBound(6)),
    activation("silu", _in_float64("silu"), ErrorBound(6)),
    activation("gelu", _in_float64("gelu"), _ENGINE),
    activation("erf", _in_float64("erf"), _ENGINE),
    elementwise("reciprocal", _reciprocal, FLOAT_ONLY, "x", numpy=("reciprocal",)),
    elementwise(
        "sin_reduced", np.sin, FLOAT_ONLY, "x", engine=EngineOp(Engine.activation, "sin")
    ),
)  # fmt: skip
"""Only the decompositions of `sin` and `cos` make `sin_reduced`, the sine of |x| ≤ π."""

# ------------------------------------------------------------------------- angles

_COARSE = 1024.0
"""Half turns are counted in lots of 1024 and singly, so that each count has at most 11 bits."""


def _split(number: float, bits: tuple[int, ...]) -> tuple[float, ...]:
    """Parts that add up to the number, each of so many bits; the last is rounded to float32.

    Exact: Python's π has 53 bits, the parts hold 13 + 13 + 24 = 50 of them.
    """
    parts = []
    for count in bits:
        step = 2.0 ** (int(np.floor(np.log2(abs(number)))) + 1 - count)
        parts.append(float(np.trunc(number / step) * step))
        number -= parts[-1]
    return (*parts, float(np.float32(number)))


_PI = _split(pi, (13, 13))
"""π in two parts whose product with a count of 11 bits is exact in float32, and the rest."""
_LARGEST_ANGLE = float(np.nextafter(np.float32(pi), np.float32(0)))


def _half_turns(x: Expr, offset: float) -> tuple[Expr, Expr]:
    """sin(x - (k + offset) π) for the k that leaves the least angle, and (-1)ᵏ.

    |x| ≤ 10⁶: absolute error below 3e-7, the engine's sine taken as exact. Beyond, k no longer
    fits its bits and the error grows; the result stays within [-1, 1].
    """
    first, second, third = _PI
    coarse = nearest(x * (1.0 / (pi * _COARSE))) * _COARSE
    near = (x - coarse * first) - coarse * second
    turns = near * (1.0 / pi)
    fine = nearest(turns - offset if offset else turns)
    count = fine + offset if offset else fine
    # All of these differences are exact but the last.
    left = (near - count * first) - (count * second + (coarse + count) * third)
    angle = left.call("minimum", _LARGEST_ANGLE).call("maximum", -_LARGEST_ANGLE)
    odd = fine - nearest(fine * 0.5) * 2.0
    sign = 1.0 - (odd * odd).call("minimum", 1.0) * 2.0
    return angle.call("sin_reduced"), sign


def _sine(x: Expr) -> Expr:
    wave, sign = _half_turns(x, 0.0)
    return wave * sign


def _cosine(x: Expr) -> Expr:
    """-(-1)ᵏ sin(x - (k + ½) π)."""
    wave, sign = _half_turns(x, 0.5)
    return -(wave * sign)


SIN = elementwise("sin", np.sin, FLOAT_ONLY, "x", numpy=("sin",), decomposition=_sine, error=_ANGLE)
COS = elementwise(
    "cos", np.cos, FLOAT_ONLY, "x", numpy=("cos",), decomposition=_cosine, error=_ANGLE
)

# -------------------------------------------------------------------- logarithms


def _log1p(x: Expr) -> Expr:
    """Where 1 + x is rounded, the logarithm is stretched by x / ((1 + x) - 1)."""
    u = x + 1.0
    d = u - 1.0
    stretched = u.call("log") * (x * d.call("reciprocal"))
    return choose(d == 0.0, x, choose(d == x, u.call("log"), stretched))


LOG1P = elementwise(
    "log1p", np.log1p, FLOAT_ONLY, "x", numpy=("log1p",), decomposition=_log1p, error=ErrorBound(5)
)
