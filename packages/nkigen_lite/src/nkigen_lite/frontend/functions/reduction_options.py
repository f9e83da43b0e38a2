"""`initial=`, `where=` and `out=` of NumPy's reductions; `.reduce` of other universal functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from math import log
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.promotion import resolved, shape_of, tape_of, traced
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.frontend.functions import out_arguments, reductions
from nkigen_lite.frontend.functions.concatenation import full_like
from nkigen_lite.frontend.functions.out_arguments import Adapt, check_mask, into
from nkigen_lite.frontend.functions.reductions import reduced_axes
from nkigen_lite.frontend.indexing.gather import part_of
from nkigen_lite.tensors.errors import (
    ArgumentError,
    BroadcastError,
    UnsupportedKeywordError,
    ValueRangeError,
)


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


# ------------------------------------------------------------------------ options


Reduction = Callable[..., Any]


def _with_out(ours: Reduction, name: str, adapt: Adapt) -> Reduction:
    """The reduction with `out=`, which `adapt` accepts."""

    def reduction(a: TracedArray, *args: Any, out: Any = None, **keywords: Any) -> Any:
        if out is None:
            return ours(a, *args, **keywords)
        if isinstance(out, TracedArray):
            a = traced(out.tape, a)
            keywords |= adapt(name, a, out, keywords.get("dtype"))
        return into(out, ours(a, *args, **keywords), name, "unsafe")

    return _signed(reduction, ours, "out")


def _with_options(ours: Reduction, joins: np.ufunc, identity: Any, adapt: Adapt) -> Reduction:
    """The reduction with all three. What `where` leaves out counts as the identity; where there is
    none, as `initial`."""
    name = f"{joins.__name__}.reduce"

    def reduction(
        a: TracedArray, *args: Any, initial: Any = np._NoValue, where: Any = True, **keywords: Any
    ) -> Any:
        given = initial is not np._NoValue
        if given and not _is_known_number(initial):
            raise UnsupportedKeywordError(f"{name}: initial= is a number known here")
        if where is not True:
            a = traced(tape_of(a, where), a)
            a = _masked(a, where, initial if identity is None and given else identity, name)
        if given and identity is None and not a.size:
            shape = np.max(np.zeros(a.shape), *args, **keywords, initial=0).shape
            return full_like(a, _as(initial, a.dtype, name), shape=shape)
        found = ours(a, *args, **keywords)
        return joins(found, _as(initial, found.dtype, name)) if given else found

    return _with_out(_signed(reduction, ours, "initial", "where"), name, adapt)


def _is_known_number(x: Any) -> bool:
    return not isinstance(x, TracedArray) and np.isscalar(x)


def _as(number: Any, dtype: np.dtype, name: str) -> Any:
    """The number as NumPy begins a reduction with it, or NumPy's error."""
    return resolved(name, lambda: np.maximum.reduce(np.zeros(0, dtype), initial=number))


def _masked(a: TracedArray, where: Any, other: Any, name: str) -> Any:
    """The array with another number where the mask is False."""
    if other is None:
        raise ValueRangeError(
            f"{name} does not have an identity, so to use a where mask one has to specify 'initial'"
        )
    check_mask(where, name)
    if np.broadcast_shapes(shape_of(where), a.shape) != a.shape:
        raise BroadcastError(
            f"{name}: where= has more elements than the array", expected=str(a.shape),
            got=str(shape_of(where)),
        )  # fmt: skip
    return np.where(where, a, _as(other, a.dtype, name))


def _signed(function: Reduction, ours: Reduction, *names: str) -> Reduction:
    """With the parameters of `ours` and these."""
    kind = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.signature(ours)
    more = [inspect.Parameter(n, kind, default=None) for n in names]
    parameters = [*signature.parameters.values(), *more]
    vars(function)["__signature__"] = signature.replace(parameters=parameters)
    return function


_ALL_OPTIONS: dict[str, tuple[Reduction, np.ufunc, Any, Adapt]] = {
    "sum": (reductions.total, np.add, 0, out_arguments.added(np.add)),
    "prod": (reductions.product, np.multiply, 1, out_arguments.added(np.multiply)),
    **dict.fromkeys(("max", "amax"), (reductions.largest, np.maximum, None, out_arguments.extreme)),
    **dict.fromkeys(
        ("min", "amin"), (reductions.smallest, np.minimum, None, out_arguments.extreme)
    ),
    "any": (reductions.any_true, np.logical_or, 0, out_arguments.truth),
    "all": (reductions.all_true, np.logical_and, 1, out_arguments.truth),
}

_IMPLEMENTATIONS: dict[str, Reduction] = {
    **{name: _with_options(*of) for name, of in _ALL_OPTIONS.items()},
    "mean": _with_out(reductions.mean, "mean", out_arguments.average),
    "var": _with_out(reductions.var, "var", out_arguments.average),
    "std": _with_out(reductions.std, "std", out_arguments.root),
    "argmax": _with_out(reductions.argmax, "argmax", out_arguments.place),
    "argmin": _with_out(reductions.argmin, "argmin", out_arguments.place),
    "cumsum": _with_out(reductions.cumsum, "cumsum", out_arguments.added(np.add)),
    "cumprod": _with_out(reductions.cumprod, "cumprod", out_arguments.added(np.multiply)),
}
"""NumPy's name → the reduction with the options that it has here."""

for _name, _reduction in _IMPLEMENTATIONS.items():
    implements(_name)(_reduction)

_REDUCED = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min",
    np.logical_and: "all", np.logical_or: "any",
}  # fmt: skip

_ADAPTED: dict[np.ufunc, Adapt] = {
    **dict.fromkeys((np.fmax, np.fmin), out_arguments.extreme),
    **dict.fromkeys((np.hypot, np.logaddexp, np.logaddexp2), out_arguments.floating),
    np.logical_xor: out_arguments.truth,
}

REDUCE: dict[np.ufunc, Reduction] = {
    **{ufunc: _IMPLEMENTATIONS[name] for ufunc, name in _REDUCED.items()},
    **{
        f: _with_options(ours, f, identity, _ADAPTED.get(f, out_arguments.joined(f)))
        for f, (ours, identity) in FOLDED.items()
    },
    np.subtract: _with_out(differences, "subtract.reduce", out_arguments.joined(np.subtract)),
}
"""Universal function → its `.reduce`."""
