"""`initial=`, `where=` and `out=` of NumPy's reductions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from nkigen_lite.errors import (
    BroadcastError,
    UnsupportedKeywordError,
    ValueRangeError,
)
from nkigen_lite.frontend import joining, outputs, reductions, scanning
from nkigen_lite.frontend.array import TracedArray
from nkigen_lite.frontend.folds import FOLDED, differences
from nkigen_lite.frontend.outputs import Adapt
from nkigen_lite.frontend.promotion import resolved, shape_of, traced
from nkigen_lite.frontend.ufuncs import check_mask, into

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
        if given and (isinstance(initial, TracedArray) or not np.isscalar(initial)):
            raise UnsupportedKeywordError(f"{name}: initial= is a number known here")
        if where is not True:
            a = traced(joining.tape_of(a, where), a)
            a = _masked(a, where, initial if identity is None and given else identity, name)
        if given and identity is None and not a.size:
            shape = np.max(np.zeros(a.shape), *args, **keywords, initial=0).shape
            return joining.full_like(a, _as(initial, a.dtype, name), shape=shape)
        found = ours(a, *args, **keywords)
        return joins(found, _as(initial, found.dtype, name)) if given else found

    return _with_out(_signed(reduction, ours, "initial", "where"), name, adapt)


def _as(number: Any, dtype: np.dtype, name: str) -> Any:
    """The number as NumPy begins a reduction with it, or NumPy's refusal."""
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
    return joining.where(where, a, _as(other, a.dtype, name))


def _signed(function: Reduction, ours: Reduction, *names: str) -> Reduction:
    """With the parameters of `ours` and these."""
    kind = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.signature(ours)
    more = [inspect.Parameter(n, kind, default=None) for n in names]
    parameters = [*signature.parameters.values(), *more]
    vars(function)["__signature__"] = signature.replace(parameters=parameters)
    return function


_ALL_OPTIONS: dict[str, tuple[Reduction, np.ufunc, Any, Adapt]] = {
    "sum": (reductions.total, np.add, 0, outputs.added(np.add)),
    "prod": (reductions.product, np.multiply, 1, outputs.added(np.multiply)),
    **dict.fromkeys(("max", "amax"), (reductions.largest, np.maximum, None, outputs.extreme)),
    **dict.fromkeys(("min", "amin"), (reductions.smallest, np.minimum, None, outputs.extreme)),
    "any": (reductions.any_true, np.logical_or, 0, outputs.truth),
    "all": (reductions.all_true, np.logical_and, 1, outputs.truth),
}

NAMES: dict[str, Reduction] = {
    **{name: _with_options(*of) for name, of in _ALL_OPTIONS.items()},
    "mean": _with_out(reductions.mean, "mean", outputs.average),
    "var": _with_out(reductions.var, "var", outputs.average),
    "std": _with_out(reductions.std, "std", outputs.root),
    "argmax": _with_out(reductions.argmax, "argmax", outputs.place),
    "argmin": _with_out(reductions.argmin, "argmin", outputs.place),
    "cumsum": _with_out(scanning.cumsum, "cumsum", outputs.added(np.add)),
    "cumprod": _with_out(scanning.cumprod, "cumprod", outputs.added(np.multiply)),
}
"""NumPy's name → the reduction with the options that it has here."""

_REDUCED = {
    np.add: "sum", np.multiply: "prod", np.maximum: "max", np.minimum: "min",
    np.logical_and: "all", np.logical_or: "any",
}  # fmt: skip

_ADAPTED: dict[np.ufunc, Adapt] = {
    **dict.fromkeys((np.fmax, np.fmin), outputs.extreme),
    **dict.fromkeys((np.hypot, np.logaddexp, np.logaddexp2), outputs.floating),
    np.logical_xor: outputs.truth,
}

REDUCE: dict[np.ufunc, Reduction] = {
    **{ufunc: NAMES[name] for ufunc, name in _REDUCED.items()},
    **{
        f: _with_options(ours, f, identity, _ADAPTED.get(f, outputs.joined(f)))
        for f, (ours, identity) in FOLDED.items()
    },
    np.subtract: _with_out(differences, "subtract.reduce", outputs.joined(np.subtract)),
}
"""Universal function → its `.reduce`."""
