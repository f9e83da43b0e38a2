"""Universal functions written with others: name → formula, in the types of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import inf, log, nan, pi
from typing import Any

import numpy as np

from nki_dtypes import float32, int32
from nkigen_lite.frontend.arrays import copies
from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.promotion import (
    as_array,
    as_value,
    cast_value,
    dtype_of,
    fresh,
    narrowed,
    resolved,
    shape_of,
)
from nkigen_lite.frontend.arrays.registry import implements, implements_ufunc
from nkigen_lite.frontend.arrays.tape import Tape
from nkigen_lite.tensors.errors import ArgumentError

Formula = Callable[..., Any]
_FLOAT32 = np.dtype(np.float32)


def _implement(name: str, formula: Formula, in_float32: bool) -> None:
    """Implement the universal function with NumPy's types: the formula on the operands' common one,
    or on float32, its result rounded once."""
    ufunc = getattr(np, name)

    def made(tape: Tape, given: tuple[Any, ...]) -> TracedArray:
        makes, xs = _operands(tape, ufunc, given)
        if in_float32:
            wide = (cast_value(tape, x.value, float32) for x in xs)
            xs = [
                fresh(tape, w, _FLOAT32, (x,), scalar=False) for w, x in zip(wide, xs, strict=True)
            ]
        return _rounded(tape, formula(*xs), makes, given)

    implements_ufunc(name)(made)


def _operands(
    tape: Tape, ufunc: np.ufunc, given: tuple[Any, ...]
) -> tuple[np.dtype, list[TracedArray]]:
    name = f"np.{ufunc.__name__}"
    kinds = (*map(dtype_of, given), *(None,) * ufunc.nout)
    *takes, makes = resolved(name, lambda: ufunc.resolve_dtypes(kinds))
    arrays = [
        fresh(tape, as_value(tape, x, t, name), t, (x,), scalar=False)
        for x, t in zip(given, takes, strict=True)
    ]
    return makes, arrays


def _rounded(tape: Tape, x: TracedArray, makes: np.dtype, given: tuple[Any, ...]) -> TracedArray:
    value = cast_value(tape, x.value, narrowed(makes))
    shape = np.broadcast_shapes(*map(shape_of, given))
    if tape.spec(value).shape != shape:
        value = tape.emit("broadcast_to", value, shape=shape)
    return fresh(tape, value, makes, given)


# ------------------------------------------------------------------------- angles


_TAN_3_8, _TAN_1_8 = 2.414213562373095, 0.4142135623730950
"""tan 3π/8 and tan π/8."""
_LARGEST = 2.0**40
"""arctan of more is π/2 in float32; within the range that is documented for the reciprocal."""


def _near_zero(t: Any) -> Any:
    """arctan t for |t| ≤ tan π/8. Coefficients: Cephes, single precision, atanf."""
    z = t * t
    p = ((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1
    return p * z * t + t


def _arctan(x: Any) -> Any:
    """arctan u = offset + arctan t, t = u, (u - 1) / (u + 1) or -1 / u, for u = |x|."""
    size = np.minimum(np.abs(x), np.float32(_LARGEST))
    is_steep, is_flat = size > _TAN_3_8, size <= _TAN_1_8
    above = np.where(is_steep, -1, np.where(is_flat, size, size - 1))
    below = np.where(is_steep, size, np.where(is_flat, 1, size + 1))
    offset = np.where(is_steep, pi / 2, np.where(is_flat, 0, pi / 4))
    return np.copysign(_near_zero(above / below) + offset, x)


def _ratio_of(small: Any, large: Any) -> Any:
    """small / large; 0 / 0 is 0. Scaled where the larger's reciprocal is not a normal number."""
    scale = np.where(large < 2.0**-80, 2.0**60, np.where(large > 2.0**100, 2.0**-24, 1))
    return (small * scale) / np.where(large == 0, 1, large * scale)


def _arctan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y): of the smaller side over the larger, then reflected."""
    a, b = np.abs(x), np.abs(y)
    large, small = np.maximum(a, b), np.minimum(a, b)
    ratio = np.where(small == inf, 1, _ratio_of(small, large))
    angle = _arctan(ratio)
    angle = np.where(b > a, pi / 2 - angle, angle)
    return np.copysign(np.where(np.signbit(x), pi - angle, angle), y)


def _arcsin(x: Any) -> Any:
    """The angle of (√(1 - x²), x)."""
    return _arctan2(x, np.sqrt((1 - x) * (1 + x)))


def _arccos(x: Any) -> Any:
    """The angle of (x, √(1 - x²))."""
    return _arctan2(np.sqrt((1 - x) * (1 + x)), x)


def _arccosh(x: Any) -> Any:
    """log(1 + t + √(2t + t²)) for t = x - 1; NaN below 1."""
    t = np.minimum(x, 1e9) - 1
    near = np.log1p(t + np.sqrt(t * (t + 2)))
    far = np.log(np.maximum(x, 1)) + log(2)
    return np.where(x < 1, nan, np.where(x < 1e9, near, far))


# ------------------------------------------------------------------------- floats


def _hypot(x: Any, y: Any) -> Any:
    """The larger times √(1 + the quotient²): no square overflows that the result does not."""
    a, b = np.abs(x), np.abs(y)
    large, small = np.maximum(a, b), np.minimum(a, b)
    ratio = _ratio_of(small, large)
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


def _is_negative(x: TracedArray) -> TracedArray:
    """Whether the sign bit of float32 is set: also that of -0."""
    bits = x.tape.emit("bitcast", x.value, dtype=int32)
    below = x.tape.emit("less", bits, x.tape.fill(0, int32))
    return fresh(x.tape, below, np.dtype(bool), (x,), scalar=False)


def _copysign(x: Any, y: Any) -> Any:
    size = np.abs(x)
    return np.where(_is_negative(y), -size, size)


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
    "signbit": _is_negative,
    "heaviside": _heaviside,
    "float_power": np.power,
    "arctan": _arctan,
    "arctan2": _arctan2,
    "arcsin": _arcsin,
    "arccos": _arccos,
    "arccosh": _arccosh,
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


for _name, _formula in (_IN_FLOAT32 | _IN_COMMON_DTYPE).items():
    _implement(_name, _formula, in_float32=_name in _IN_FLOAT32)


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


# ------------------------------------------------------- decimals, tens, hundreds


@implements("round", "around")
def rounded(a: Array, decimals: int = 0) -> Any:
    """`np.round`: rint(a · 10ᵈ) / 10ᵈ, each step rounded to a's dtype; ties to even."""
    if decimals < 0:
        return _to_tens(a, 10**-decimals)
    if decimals > 0 and a.spec.dtype.is_float:
        scale = 10.0**decimals
        whole = np.rint(np.multiply(a, scale).astype(a.dtype))
        return np.divide(whole, scale).astype(a.dtype)
    makes = np.round(np.zeros(0, a.dtype)).dtype  # bool becomes float16
    return np.rint(a) if a.spec.dtype.is_float else copies.astype(a, makes)


def _to_tens(a: Array, lot: int) -> Any:
    """Multiples of 10, 100, …"""
    if a.dtype == bool:
        raise ArgumentError("np.round: bool has no tens", got=str(a.spec))
    if not a.spec.dtype.is_float:
        return _of_integers(a, lot)
    if a.spec.dtype is not float32:
        tens = np.rint(np.divide(a, float(lot)).astype(a.dtype))
        return np.multiply(tens, float(lot)).astype(a.dtype)
    inside = np.where(np.abs(a) < inf, a, 0)
    return np.where(np.abs(a) < inf, _nearest(inside, float(lot)), a)


def _of_integers(a: Array, lot: int) -> Any:
    """Exact, and wraps; 0 where half of the lot is beyond the dtype."""
    held = a.spec.dtype
    if lot > 2 * held.max:
        return np.zeros_like(a)[()] if a.is_scalar else np.zeros_like(a)
    wide = a.astype(np.int32) if held.bits < 32 else a
    return _nearest(wide, lot).astype(a.dtype)


def _nearest(x: Array, lot: Any) -> Any:
    """The multiple of the lot that is nearest; of two the even one. Quotient and rest are exact."""
    count, rest = x // lot, x % lot
    more, less = rest > lot - rest, rest < lot - rest
    is_odd = count % 2 == 1
    up = more | (~less & is_odd)
    return (count + up.astype(x.dtype)) * lot
