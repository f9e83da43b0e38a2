"""`.reduce` of universal functions that NumPy has under no other name."""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays.array import Array
from nkigen_lite.frontend.functions.reductions import reduced_axes
from nkigen_lite.frontend.indexing.gather import part_of
from nkigen_lite.tensors.errors import ArgumentError, ValueRangeError


def differences(
    a: Array, axis: Any = 0, keepdims: bool = False, initial: Any = np._NoValue, where: Any = True
) -> Any:
    """The first element (or `initial`) minus the sum of the others."""
    name, axes = "np.subtract.reduce", reduced_axes(axis, a.ndim)
    if a.dtype == bool:
        raise ArgumentError(
            f"{name}: numpy boolean subtract, the `-` operator, is not supported",
            hint="np.logical_xor.reduce",
        )
    if len(axes) > 1:
        raise ValueRangeError(
            "reduction operation 'subtract' is not reorderable, so at most one axis may be "
            "specified", got=repr(axis), operand="axis",
        )  # fmt: skip
    if initial is not np._NoValue:
        total = np.sum(a, axis=axis, dtype=a.spec.dtype.storage, keepdims=keepdims, where=where)
        return np.subtract(initial, total).astype(a.dtype)
    if where is not True:
        raise ValueRangeError(f"{name} has no identity: where= needs initial=", operand="where")
    if not axes:
        return np.copy(a)[()]
    if not a.shape[axes[0]]:
        raise ValueRangeError(
            "zero-size array to reduction operation subtract which has no identity", got=str(a.spec)
        )
    first, rest = part_of(a, axes[0], 0, 1), part_of(a, axes[0], 1, a.shape[axes[0]])
    total = np.sum(rest, axis=axes, dtype=a.spec.dtype.storage, keepdims=True)
    found = np.subtract(first, total)
    return found if keepdims else np.squeeze(found, axes)[()]


def folded(ufunc: np.ufunc, identity: Any) -> Callable[..., Any]:
    """Halves joined with halves, of a function for which the order does not matter."""

    def reduction(a: Array, axis: Any = 0, keepdims: bool = False) -> Any:
        axes = reduced_axes(axis, a.ndim)
        for along in axes:
            a = _halved(ufunc, a, along, identity)
        return a if keepdims else np.squeeze(a, axes)[()]

    return reduction


def _halved(ufunc: np.ufunc, a: Array, axis: int, identity: Any) -> Array:
    """One element along the axis is left."""
    if ufunc is np.logical_xor:
        a = a.astype(bool)
    n, over = a.shape[axis], []
    if not n and identity is None:
        raise ValueRangeError(
            f"zero-size array to reduction operation {ufunc.__name__} which has no identity",
            got=str(a.spec),
        )
    if not n:
        shape = tuple(1 if d == axis else m for d, m in enumerate(a.shape))
        return np.full_like(a, identity, shape=shape)
    while n > 1:
        half = n // 2
        if n % 2:
            over.append(part_of(a, axis, n - 1, n))
        a = ufunc(part_of(a, axis, 0, half), part_of(a, axis, half, 2 * half))
        n = half
    for last in over:
        a = ufunc(a, last)
    return a


def log_sum(ufunc: np.ufunc, base: float) -> Callable[..., Any]:
    """The largest + log Σ e^(x - largest), in float32, rounded once."""

    def reduction(a: Array, axis: Any = 0, keepdims: bool = False) -> Any:
        if a.dtype == bool:
            raise ArgumentError(f"np.{ufunc.__name__}.reduce of bool is not translated")
        makes = ufunc.resolve_dtypes((a.dtype, a.dtype, None))[-1]
        axes = reduced_axes(axis, a.ndim)
        if any(not a.shape[d] for d in axes):
            empty = np.sum(a, axis=axes, keepdims=keepdims).astype(makes)
            return empty - np.inf
        x = a.astype(np.float32) * np.float32(log(base))
        top = np.max(x, axis=axes, keepdims=True)
        level = np.where(np.abs(top) < np.inf, top, np.float32(0))
        total = np.log(np.sum(np.exp(x - level), axis=axes, keepdims=True)) + level
        total = (total * np.float32(1 / log(base))).astype(makes)
        return total if keepdims else np.squeeze(total, axes)[()]

    return reduction


FOLDED: dict[np.ufunc, tuple[Callable[..., Any], Any]] = {
    np.bitwise_and: (folded(np.bitwise_and, -1), -1),
    **{f: (folded(f, 0), 0) for f in (np.bitwise_or, np.bitwise_xor, np.logical_xor, np.hypot)},
    **{f: (folded(f, None), None) for f in (np.fmax, np.fmin)},
    np.logaddexp: (log_sum(np.logaddexp, np.e), -np.inf),
    np.logaddexp2: (log_sum(np.logaddexp2, 2.0), -np.inf),
}
"""Universal function → its `.reduce`, and its identity (None: it has none)."""
