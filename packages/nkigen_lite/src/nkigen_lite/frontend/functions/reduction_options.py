"""`initial=`, `where=` and `out=` of NumPy's reductions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.promotion import resolved, shape_of, tape_of, traced
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.frontend.functions import cumulative, out_arguments, reductions
from nkigen_lite.frontend.functions.creation import full_like
from nkigen_lite.frontend.functions.out_arguments import Adapt, check_mask, into
from nkigen_lite.frontend.functions.ufunc_reductions import FOLDED, differences
from nkigen_lite.tensors.errors import (
    BroadcastError,
    UnsupportedKeywordError,
    ValueRangeError,
)

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
            a = traced(tape_of(a, where), a)
            a = _masked(a, where, initial if identity is None and given else identity, name)
        if given and identity is None and not a.size:
            shape = np.max(np.zeros(a.shape), *args, **keywords, initial=0).shape
            return full_like(a, _as(initial, a.dtype, name), shape=shape)
        found = ours(a, *args, **keywords)
        return joins(found, _as(initial, found.dtype, name)) if given else found

    return _with_out(_signed(reduction, ours, "initial", "where"), name, adapt)


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
    "cumsum": _with_out(cumulative.cumsum, "cumsum", out_arguments.added(np.add)),
    "cumprod": _with_out(cumulative.cumprod, "cumprod", out_arguments.added(np.multiply)),
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
