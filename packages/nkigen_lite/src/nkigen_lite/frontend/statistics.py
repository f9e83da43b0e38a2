"""What NumPy computes from sums and extremes: norms, averages, counts, comparisons of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import inf, nan, pi
from typing import Any

import numpy as np

from nkigen_lite.errors import (
    ArgumentError,
    BroadcastError,
    UnsupportedKeywordError,
    ValueRangeError,
)
from nkigen_lite.frontend import joining, views
from nkigen_lite.frontend.promotion import (
    as_array,
    check_casting,
    operand,
    resolved,
    shape_of,
    traced,
)

Array = Any
"""A traced array: NumPy's stubs say that its functions give arrays of its own."""

# ------------------------------------------------------------------------ differences


def _diff(a: Any, n: int = 1, axis: Any = -1, prepend: Any = None, append: Any = None) -> Any:
    if n < 0:
        raise ValueRangeError(f"order must be non-negative but got {n}")
    a = traced(joining.tape_of(a, prepend, append), a)
    axis = views.axis_of(axis, a.ndim)
    one = (*a.shape[:axis], 1, *a.shape[axis + 1 :])
    sides = [
        None if s is None else np.broadcast_to(s, one) if not shape_of(operand(s)) else s
        for s in (prepend, append)
    ]
    parts = [x for x in (sides[0], a, sides[1]) if x is not None]
    x: Any = joining.concatenate(parts, axis) if len(parts) > 1 else a
    before = (slice(None),) * axis
    for _ in range(n):
        later, sooner = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = later != sooner if x.dtype == bool else later - sooner
    return x


def _trapezoid(y: Array, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    last = np.moveaxis(y, axis, -1)
    if x is not None:
        dx = (
            np.diff(x)
            if len(shape_of(operand(x))) == 1
            else np.moveaxis(np.diff(x, axis=axis), axis, -1)
        )
    return np.sum(dx * (last[..., 1:] + last[..., :-1]) / 2.0, axis=-1)


def _ptp(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
    return np.max(a, axis, keepdims=keepdims) - np.min(a, axis, keepdims=keepdims)


# --------------------------------------------------------------------------- averages


def _average(a: Any, axis: Any = None, weights: Any = None, keepdims: bool = False) -> Any:
    if weights is None:
        return np.mean(a, axis, keepdims=keepdims)
    shape, of_weights = shape_of(operand(a)), shape_of(operand(weights))
    if of_weights != shape:
        if axis is None or len(of_weights) != 1:
            raise BroadcastError(
                "np.average: shape of weights must be consistent with shape of a along axis",
                got=f"{of_weights} and {shape}",
            )
        along = views.axis_of(axis, len(shape))
        if of_weights[0] != shape[along]:
            raise BroadcastError("Length of weights not compatible with specified axis.")
        lot = [-1 if d == along else 1 for d in range(len(shape))]
        weights = np.broadcast_to(np.reshape(weights, lot), shape)
    dtypes = [as_array(given).dtype for given in (a, weights)]
    wide = ("f8",) * (dtypes[0].kind in "iub")
    dtype = resolved("np.average", lambda: np.result_type(*dtypes, *wide))
    total = np.sum(np.multiply(a, weights, dtype=dtype), axis=axis, keepdims=keepdims)
    return total / np.sum(weights, axis=axis, dtype=dtype, keepdims=keepdims)


def _count_nonzero(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
    return np.sum(a != 0, axis=axis, keepdims=keepdims)


def _without_nan(op: Any, instead: float) -> Any:
    def reduced(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
        if not a.spec.dtype.is_float:
            return op(a, axis=axis, keepdims=keepdims)
        return op(np.where(np.isnan(a), instead, a), axis=axis, keepdims=keepdims)

    return reduced


def _extreme_but_nan(op: Any, instead: float) -> Any:
    """NaN where there is nothing else."""

    def reduced(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
        found = _without_nan(op, instead)(a, axis, keepdims)
        if not a.spec.dtype.is_float:
            return found
        has_none = np.all(np.isnan(a), axis=axis, keepdims=keepdims)
        return np.where(has_none, nan, found).astype(a.dtype)

    return reduced


def _nanmean(a: Array, axis: Any = None, keepdims: bool = False) -> Any:
    if not a.spec.dtype.is_float:
        return np.mean(a, axis, keepdims=keepdims)
    total = _without_nan(np.sum, 0)(a.astype(np.float32), axis, keepdims)
    count = np.sum(~np.isnan(a), axis=axis, keepdims=keepdims)
    return (total / count.astype(np.float32)).astype(a.spec.dtype.storage)


# ------------------------------------------------------------------------------ norms


def _as_floats(x: Array) -> Array:
    """float64 of what NumPy itself does not count as floats: integers, bfloat16, fp8."""
    return x if issubclass(x.dtype.type, np.inexact) else x.astype(np.float64)


def _norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Of vectors: 2 (and None), 1, 0, ±inf, p; of matrices: "fro" (and None), 1, -1, ±inf."""
    x = _as_floats(x)
    if axis is None and (ord is None or (x.ndim, ord) in ((1, 2), (2, "fro"))):
        return np.sqrt(np.sum(np.square(x), keepdims=keepdims))
    axes = views.axes_of(axis, x.ndim) if not isinstance(axis, (tuple, list)) else tuple(
        views.axis_of(d, x.ndim) for d in axis
    )  # fmt: skip
    if len(axes) == 1:
        return vector_norm(x, ord=2 if ord is None else ord, axis=axes, keepdims=keepdims)
    if len(axes) != 2:
        raise ValueRangeError("Improper number of dimensions to norm.", got=str(x.spec))
    if ord in (None, "fro", "f"):
        return np.sqrt(np.sum(np.square(x), axis=axes, keepdims=keepdims))
    if ord not in (1, -1, inf, -inf):
        raise UnsupportedKeywordError(
            f"np.linalg.norm: ord={ord!r} of matrices is not translated",
            expected="None, 'fro', 1, -1, inf, -inf", operand="ord",
        )  # fmt: skip
    summed, chosen = axes if abs(ord) == 1 else axes[::-1]
    lines = np.sum(np.abs(x), axis=summed, keepdims=True)
    found = (np.max if ord > 0 else np.min)(lines, axis=chosen, keepdims=True)
    return found if keepdims else np.squeeze(found, axes)


def vector_norm(x: Array, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """`np.linalg.vector_norm`."""
    x = _as_floats(x)
    axes = views.axes_of(axis, x.ndim)
    if ord in (inf, -inf):
        return (np.max if ord > 0 else np.min)(np.abs(x), axis=axes, keepdims=keepdims)
    if ord == 0:
        return np.sum((x != 0).astype(x.spec.dtype.storage), axis=axes, keepdims=keepdims)
    if ord == 1:
        return np.sum(np.abs(x), axis=axes, keepdims=keepdims)
    if ord in (2, None):
        return np.sqrt(np.sum(np.square(x), axis=axes, keepdims=keepdims))
    if isinstance(ord, str):
        raise ValueRangeError(f"Invalid norm order {ord!r} for vectors", operand="ord")
    return np.power(np.sum(np.power(np.abs(x), ord), axis=axes, keepdims=keepdims), 1 / ord)


# --------------------------------------------------------------------- element by element


def _nan_to_num(
    x: Array, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """Only what NumPy itself counts as floats: not bfloat16, not fp8."""
    is_number, dtype = x.is_scalar, x.spec.dtype
    x = np.copy(x) if copy or is_number else x
    if issubclass(x.dtype.type, np.inexact):
        x[...] = _finite(x, dtype, nan, posinf, neginf)
    return x[()] if is_number else x


def _finite(x: Array, dtype: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    top = dtype.max if posinf is None else posinf
    low = dtype.min if neginf is None else neginf
    x = np.where(np.isnan(x), nan, x)
    return np.where(x == inf, top, np.where(x == -inf, low, x))


def _distance(a: Array, b: Array) -> Array:
    """|a - b|, as float64 has it: integers of 32 bits exactly, by the bits of their difference."""
    if a.dtype == b.dtype and a.dtype in (np.int32, np.uint32):
        return (np.maximum(a, b) - np.minimum(a, b)).astype(np.uint32)
    return np.abs(a - b.astype(np.result_type(b.dtype, 1.0)))


def _is_same(a: Array, b: Array) -> Array:
    """a == b: whole numbers exactly, others with `b` no narrower than NumPy makes it."""
    is_whole = a.dtype.kind in "iub" and b.dtype.kind in "iub"
    return a == b if is_whole else a == b.astype(np.result_type(b.dtype, 1.0))


def _isclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    given: list[Any] = [traced(joining.tape_of(a, b), v) for v in (a, b)]
    a, b = given
    near = _distance(a, b) <= atol + rtol * np.abs(b.astype(np.result_type(b.dtype, 1.0)))
    close = (near & np.isfinite(b)) | _is_same(a, b)
    return close | (np.isnan(a) & np.isnan(b)) if equal_nan else close


def _allclose(a: Any, b: Any, rtol: Any = 1e-5, atol: Any = 1e-8, equal_nan: bool = False) -> Any:
    return np.all(_isclose(a, b, rtol, atol, equal_nan))


def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """A truth of the kernel's; False at once for other shapes."""
    if shape_of(operand(a1)) != shape_of(operand(a2)):
        return False
    same = np.equal(a1, a2)
    return np.all(same | (np.not_equal(a1, a1) & np.not_equal(a2, a2)) if equal_nan else same)


def _select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueRangeError("list of cases must be same length as list of conditions")
    for place, condition in enumerate(condlist):
        if as_array(condition).dtype.kind != "b":
            raise ArgumentError(
                f"invalid entry {place} in condlist: should be boolean ndarray",
                got=str(as_array(condition).dtype), operand="condlist",
            )  # fmt: skip
    choices = [_choice(choice) for choice in (*choicelist, default)]
    dtype = resolved("np.select", lambda: np.result_type(*map(_weak_or_dtype, choices)))
    *chosen, last = [
        c.astype(dtype) if hasattr(c, "dtype") else np.asarray(c, dtype) for c in choices
    ]
    pairs = zip(reversed(condlist), reversed(chosen), strict=True)
    return reduce(lambda rest, pair: np.where(*pair, rest), pairs, last)


def _choice(given: Any) -> Any:
    """Python's ints and floats are weak; all else is an array."""
    return given if type(given) in (int, float) else as_array(given)


def _weak_or_dtype(given: Any) -> Any:
    return given.dtype if hasattr(given, "dtype") else given


def _copyto(dst: Array, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    check_casting("np.copyto", operand(src), dst.dtype, casting)
    dst[...] = src if where is True else np.where(where, src, dst)


_FLAT = 1e-5
"""sin(pi x) / (pi x) is 1 below, to half a unit of float32: 1 - (pi x)**2 / 6."""


def _sinc(x: Array) -> Any:
    is_flat = abs(x) < _FLAT
    angle = np.where(is_flat, 1, x) * pi
    return np.where(is_flat, 1, np.sin(angle) / angle)


def _polyval(p: Any, x: Any) -> Any:
    """Horner's scheme."""
    return reduce(lambda found, c: found * x + c, list(as_array(p)), np.zeros_like(x))


NAMES: dict[str, Any] = {
    "diff": _diff, "trapezoid": _trapezoid, "ptp": _ptp, "average": _average,
    "count_nonzero": _count_nonzero, "nansum": _without_nan(np.sum, 0),
    "nanprod": _without_nan(np.prod, 1), "nanmax": _extreme_but_nan(np.max, -inf),
    "nanmin": _extreme_but_nan(np.min, inf), "nanmean": _nanmean,
    "linalg.norm": _norm, "linalg.vector_norm": vector_norm, "nan_to_num": _nan_to_num,
    "isclose": _isclose, "allclose": _allclose, "array_equal": _array_equal, "select": _select,
    "copyto": _copyto, "sinc": _sinc, "polyval": _polyval,
    "isposinf": lambda x: np.equal(x, inf), "isneginf": lambda x: np.equal(x, -inf),
    "fix": lambda x: np.trunc(x), "real": lambda val: val, "iscomplexobj": lambda x: False,
    "isrealobj": lambda x: True,
}  # fmt: skip
"""NumPy's name → the same of traced arrays."""
