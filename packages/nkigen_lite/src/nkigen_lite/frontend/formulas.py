"""Universal functions written with others: name → formula, on float32 and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, pi
from typing import Any

import numpy as np

from nki_dtypes import float32, int32
from nkigen_lite.frontend import inverse
from nkigen_lite.frontend.array import TracedArray
from nkigen_lite.frontend.promotion import (
    as_value,
    cast_value,
    dtype_of,
    fresh,
    narrowed,
    resolved,
    shape_of,
)
from nkigen_lite.frontend.tape import Tape

Formula = Callable[..., Any]
_FLOAT32 = np.dtype(np.float32)


def _in_float32(ufunc: np.ufunc, formula: Formula) -> Formula:
    """NumPy's types; the formula on float32, its result rounded once."""

    def made(tape: Tape, given: tuple[Any, ...]) -> TracedArray:
        makes, xs = _operands(tape, ufunc, given)
        wide = [
            fresh(tape, cast_value(tape, x.value, float32), _FLOAT32, (x,), scalar=False)
            for x in xs
        ]
        return _rounded(tape, formula(*wide), makes, given)

    return made


def _in_kind(ufunc: np.ufunc, formula: Formula) -> Formula:
    """NumPy's types; the formula on the operands' common one."""

    def made(tape: Tape, given: tuple[Any, ...]) -> TracedArray:
        makes, xs = _operands(tape, ufunc, given)
        return _rounded(tape, formula(*xs), makes, given)

    return made


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


# ------------------------------------------------------------------------- floats


def _hypot(x: Any, y: Any) -> Any:
    """The larger times √(1 + the quotient²): no square overflows that the result does not."""
    a, b = np.abs(x), np.abs(y)
    large, small = np.maximum(a, b), np.minimum(a, b)
    ratio = inverse.ratio_of(small, large)
    size = np.where(large == inf, inf, large * np.sqrt(1 + ratio * ratio))
    return np.where((a == inf) | (b == inf), inf, size)


def _logaddexp(x: Any, y: Any) -> Any:
    """The larger + log(1 + e^-|x - y|); equal ones, infinite ones too, have no difference."""
    apart = np.where(x == y, 0, x - y)
    return np.maximum(x, y) + np.log1p(np.exp(-np.abs(apart)))


def _logaddexp2(x: Any, y: Any) -> Any:
    apart = np.where(x == y, 0, x - y)
    return np.maximum(x, y) + np.log1p(np.exp(-np.abs(apart) * log(2))) * (1 / log(2))


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


_FLOATS: dict[np.ufunc, Formula] = {
    np.fabs: np.abs,
    np.hypot: _hypot,
    np.logaddexp: _logaddexp,
    np.logaddexp2: _logaddexp2,
    np.exp2: lambda x: np.power(2.0, x),
    np.log2: lambda x: np.log(x) * (1 / log(2)),
    np.log10: lambda x: np.log(x) * (1 / log(10)),
    np.cbrt: _cbrt,
    np.tan: lambda x: np.sin(x) / np.cos(x),
    np.sinh: _sinh,
    np.cosh: _cosh,
    np.arcsinh: _arcsinh,
    np.arctanh: _arctanh,
    np.arctan: inverse.arctan,
    np.arctan2: inverse.arctan2,
    np.arcsin: inverse.arcsin,
    np.arccos: inverse.arccos,
    np.arccosh: inverse.arccosh,
    np.copysign: _copysign,
    np.signbit: is_negative,
    np.heaviside: _heaviside,
    np.float_power: np.power,
    **dict.fromkeys((np.degrees, np.rad2deg), lambda x: x * (180 / pi)),
    **dict.fromkeys((np.radians, np.deg2rad), lambda x: x * (pi / 180)),
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


_NUMBERS: dict[np.ufunc, Formula] = {
    np.fmod: _fmod,
    np.fmax: _without_nan(np.maximum),
    np.fmin: _without_nan(np.minimum),
    np.conjugate: np.copy,
    np.positive: np.copy,
}

# ---------------------------------------------------------------- what is no number


def _as_float(x: Any) -> Any:
    return x if x.spec.dtype.is_float else x.astype(np.float32)


def _isnan(tape: Tape, given: tuple[Any, ...]) -> Any:
    return np.not_equal(given[0], given[0])


def _isinf(tape: Tape, given: tuple[Any, ...]) -> Any:
    return np.equal(np.abs(_as_float(given[0])), inf)


def _isfinite(tape: Tape, given: tuple[Any, ...]) -> Any:
    return np.less(np.abs(_as_float(given[0])), inf)


def _divmod(tape: Tape, given: tuple[Any, ...]) -> Any:
    return np.floor_divide(*given), np.remainder(*given)


FORMULAS: dict[np.ufunc, Callable[[Tape, tuple[Any, ...]], Any]] = {
    **{ufunc: _in_float32(ufunc, formula) for ufunc, formula in _FLOATS.items()},
    **{ufunc: _in_kind(ufunc, formula) for ufunc, formula in _NUMBERS.items()},
    np.isnan: _isnan,
    np.isinf: _isinf,
    np.isfinite: _isfinite,
    np.divmod: _divmod,
}
"""Universal function → what it is in others."""
