"""Universal functions written with others: name → formula, on float32 and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import inf, log, pi
from typing import Any

import numpy as np

from nki_dtypes import int32
from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.promotion import (
    as_array,
    fresh,
)
from nkigen_lite.frontend.arrays.registry import implements, implements_ufunc
from nkigen_lite.frontend.arrays.tape import Tape
from nkigen_lite.frontend.functions.formulas import in_common_dtype, in_float32
from nkigen_lite.frontend.functions.inverse_functions import ratio_of

Formula = Callable[..., Any]

# ------------------------------------------------------------------------- floats


def _hypot(x: Any, y: Any) -> Any:
    """The larger times √(1 + the quotient²): no square overflows that the result does not."""
    a, b = np.abs(x), np.abs(y)
    large, small = np.maximum(a, b), np.minimum(a, b)
    ratio = ratio_of(small, large)
    size = np.where(large == inf, inf, large * np.sqrt(1 + ratio * ratio))
    return np.where((a == inf) | (b == inf), inf, size)


def _logaddexp(x: Any, y: Any) -> Any:
    """The larger + log(1 + e^-|x - y|); equal ones, infinite ones too, have no difference."""
    difference = np.where(x == y, 0, x - y)
    return np.maximum(x, y) + np.log1p(np.exp(-np.abs(difference)))


def _logaddexp2(x: Any, y: Any) -> Any:
    difference = np.where(x == y, 0, x - y)
    return np.maximum(x, y) + np.log1p(np.exp(-np.abs(difference) * log(2))) * (1 / log(2))


def _cbrt(x: Any) -> Any:
    """A power of 1/3, and one step of Newton's that leaves two roundings of it."""
    size = np.abs(x)
    inside = np.where(size < inf, size, 1)
    inside = (inside == 0) + inside
    root = np.exp(np.log(inside) * (1 / 3))
    root = root - (root - inside / (root * root)) * (1 / 3)
    return np.where(inside == size, root * np.sign(x), x)


def is_negative(x: TracedArray) -> TracedArray:
    """Whether the sign bit of float32 is set: also that of -0."""
    bits = x.tape.emit("bitcast", x.value, dtype=int32)
    below = x.tape.emit("less", bits, x.tape.fill(0, int32))
    return fresh(x.tape, below, np.dtype(bool), (x,), scalar=False)


def _copysign(x: Any, y: Any) -> Any:
    size = np.abs(x)
    return np.where(is_negative(y), -size, size)


def _heaviside(x: Any, y: Any) -> Any:
    return np.where(x == 0, y, np.where(x < 0, 0, np.where(x > 0, 1, x)))


def _sinh(x: Any) -> Any:
    """(e + e / (e + 1)) / 2 for e = expm1 |x|; e^|x| / 2 in two factors where that is all."""
    size = np.abs(x)
    e = np.expm1(np.minimum(size, 20))
    half = np.exp(size * 0.5)
    grown = np.where(size < 20, (e + e / (e + 1)) * 0.5, half * 0.5 * half)
    return grown * np.sign(x)


def _cosh(x: Any) -> Any:
    half = np.exp(np.abs(x) * 0.5)
    return half * 0.5 * half + 0.5 * np.exp(-np.abs(x))


def _arcsinh(x: Any) -> Any:
    size = np.abs(x)
    small = np.minimum(size, 1e9)
    near = np.log1p(small + small * small / (1 + np.sqrt(small * small + 1)))
    return np.where(size < 1e9, near, np.log(np.maximum(size, 1)) + log(2)) * np.sign(x)


def _arctanh(x: Any) -> Any:
    size = np.abs(x)
    return 0.5 * np.log1p(2 * size / (1 - size)) * np.sign(x)


_IN_FLOAT32: dict[str, Formula] = {
    "fabs": np.abs,
    "hypot": _hypot,
    "logaddexp": _logaddexp,
    "logaddexp2": _logaddexp2,
    "exp2": lambda x: np.power(2.0, x),
    "log2": lambda x: np.log(x) * (1 / log(2)),
    "log10": lambda x: np.log(x) * (1 / log(10)),
    "cbrt": _cbrt,
    "tan": lambda x: np.sin(x) / np.cos(x),
    "sinh": _sinh,
    "cosh": _cosh,
    "arcsinh": _arcsinh,
    "arctanh": _arctanh,
    "copysign": _copysign,
    "signbit": is_negative,
    "heaviside": _heaviside,
    "float_power": np.power,
    **dict.fromkeys(("degrees", "rad2deg"), lambda x: x * (180 / pi)),
    **dict.fromkeys(("radians", "deg2rad"), lambda x: x * (pi / 180)),
}

# ------------------------------------------------------------------- every number


def _fmod(x: Any, y: Any) -> Any:
    """The rest with the sign of x; of integers from the rest with the sign of y, of floats by
    magnitudes, whose rest is exact."""
    if x.spec.dtype.is_float:
        rest = np.abs(x) % np.abs(y)
        return np.where(x < 0, -rest, rest)
    rest = x % y
    return np.where((rest != 0) & ((x < 0) != (y < 0)), rest - y, rest)


def _without_nan(choose: np.ufunc) -> Formula:
    """The other where one is NaN."""
    return lambda x, y: np.where(x != x, y, np.where(y != y, x, choose(x, y)))


_IN_COMMON_DTYPE: dict[str, Formula] = {
    "fmod": _fmod,
    "fmax": _without_nan(np.maximum),
    "fmin": _without_nan(np.minimum),
    "conjugate": np.copy,
    "positive": np.copy,
}

# ---------------------------------------------------------------- what is not a number


def _as_float(x: Any) -> Any:
    return x if x.spec.dtype.is_float else x.astype(np.float32)


@implements_ufunc("isnan")
def _isnan(tape: Tape, given: tuple[Any, ...]) -> Any:
    return np.not_equal(given[0], given[0])


@implements_ufunc("isinf")
def _isinf(tape: Tape, given: tuple[Any, ...]) -> Any:
    return np.equal(np.abs(_as_float(given[0])), inf)


@implements_ufunc("isfinite")
def _isfinite(tape: Tape, given: tuple[Any, ...]) -> Any:
    return np.less(np.abs(_as_float(given[0])), inf)


@implements_ufunc("divmod")
def _divmod(tape: Tape, given: tuple[Any, ...]) -> Any:
    return np.floor_divide(*given), np.remainder(*given)


for _name, _formula in _IN_FLOAT32.items():
    in_float32(_name, _formula)
for _name, _formula in _IN_COMMON_DTYPE.items():
    in_common_dtype(_name, _formula)


_FLAT = 1e-5
"""sin(pi x) / (pi x) is 1 below, to half a unit of float32: 1 - (pi x)**2 / 6."""


@implements("sinc")
def _sinc(x: Array) -> Any:
    is_flat = abs(x) < _FLAT
    angle = np.where(is_flat, 1, x) * pi
    return np.where(is_flat, 1, np.sin(angle) / angle)


@implements("polyval")
def _polyval(p: Any, x: Any) -> Any:
    """Horner's scheme."""
    return reduce(lambda found, c: found * x + c, list(as_array(p)), np.zeros_like(x))


implements("isposinf")(lambda x: np.equal(x, inf))


implements("isneginf")(lambda x: np.equal(x, -inf))


implements("fix")(lambda x: np.trunc(x))


implements("real")(lambda val: val)


implements("iscomplexobj")(lambda x: False)


implements("isrealobj")(lambda x: True)
