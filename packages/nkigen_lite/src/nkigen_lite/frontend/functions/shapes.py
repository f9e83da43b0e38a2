"""Axes of arrays permuted, added, removed and reversed; shapes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.promotion import operand, shape_of
from nkigen_lite.frontend.arrays.registry import Function, implements
from nkigen_lite.tensors.errors import ArgumentError, BroadcastError, ValueRangeError


def with_axes(x: Any, least: int) -> Any:
    """NumPy's atleast_1d, 2d, 3d."""
    shape = shape_of(operand(x))
    if len(shape) >= least:
        return x
    new = {0: (1,) * least, 1: (1, *shape) if least == 2 else (1, *shape, 1)}.get(
        len(shape), (*shape, 1)
    )
    return np.reshape(x, new)


def _at_least(least: int) -> Function:
    def made(*arys: Any) -> Any:
        found = tuple(with_axes(x, least) for x in arys)
        return found[0] if len(found) == 1 else found

    return made


@implements("broadcast_arrays")
def _broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    try:
        shape = np.broadcast_shapes(*(shape_of(operand(a)) for a in args))
    except ValueError as error:
        raise BroadcastError(f"np.broadcast_arrays: {error}") from None
    if all(shape_of(operand(a)) == shape for a in args):
        return tuple(np.copy(a) if _is_number(a) else a for a in args)
    return tuple(np.broadcast_to(a, shape) for a in args)


def _is_number(x: Any) -> bool:
    return x.is_scalar if isinstance(x, TracedArray) else not isinstance(x, np.ndarray)


@implements("meshgrid")
def _meshgrid(
    *xi: Any, copy: Any = True, sparse: Any = False, indexing: str = "xy"
) -> tuple[Any, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueRangeError("Valid values for `indexing` are 'xy' and 'ij'.", got=repr(indexing))
    n = len(xi)
    place = [1, 0, *range(2, n)] if indexing == "xy" and n > 1 else list(range(n))
    lines = [
        np.reshape(x, [-1 if d == place[number] else 1 for d in range(n)])
        for number, x in enumerate(xi)
    ]
    made = tuple(lines) if sparse else _broadcast_arrays(*lines)
    return tuple(a.copy() for a in made) if copy else made


def _flip_axis(axis: int) -> Function:
    def flip(m: Array) -> Array:
        if m.ndim <= axis:
            raise ValueRangeError(f"Input must be >= {axis + 1}-d.", got=str(m.spec))
        return np.flip(m, axis)

    return flip


@implements("rot90")
def _rot90(m: Array, k: int = 1, axes: Any = (0, 1)) -> Array:
    if len(axes) != 2:
        raise ValueRangeError("len(axes) must be 2.", got=repr(axes), operand="axes")
    one, other = (views.axis_of(a, m.ndim) for a in axes)
    if one == other:
        raise ValueRangeError("Axes must be different.", got=repr(axes))
    transposed = m if k % 2 == 0 else np.swapaxes(m, one, other)
    flips = {0: (), 1: (one,), 2: (one, other), 3: (other,)}[k % 4]
    return np.flip(transposed, flips)


implements("atleast_1d")(_at_least(1))
implements("atleast_2d")(_at_least(2))
implements("atleast_3d")(_at_least(3))
implements("flipud")(_flip_axis(0))
implements("fliplr")(_flip_axis(1))


@implements("transpose")
def _transpose(a: TracedArray, axes: Any = None) -> TracedArray:
    return views.transposed(a, axes)


@implements("swapaxes")
def swapaxes(a: TracedArray, axis1: Any, axis2: Any) -> TracedArray:
    order = list(range(a.ndim))
    first, second = views.axis_of(axis1, a.ndim), views.axis_of(axis2, a.ndim)
    order[first], order[second] = order[second], order[first]
    return views.transposed(a, order)


@implements("moveaxis")
def _moveaxis(a: TracedArray, source: Any, destination: Any) -> TracedArray:
    pairs = [s if isinstance(s, (tuple, list)) else (s,) for s in (source, destination)]
    if len(pairs[0]) != len(pairs[1]):
        raise ArgumentError("source and destination have different lengths")
    froms, tos = ([views.axis_of(x, a.ndim) for x in p] for p in pairs)
    order = [d for d in range(a.ndim) if d not in froms]
    for to, origin in sorted(zip(tos, froms, strict=True)):
        order.insert(to, origin)
    return views.transposed(a, order)


@implements("squeeze")
def _squeeze(a: TracedArray, axis: Any = None) -> TracedArray:
    ones = [d for d, n in enumerate(a.shape) if n == 1]
    axes = ones if axis is None else views.axes_of(axis, a.ndim)
    if any(a.shape[d] != 1 for d in axes):
        raise ValueRangeError(
            "cannot select an axis to squeeze out which has size not equal to one", got=str(a.shape)
        )
    return views.reshape(a, tuple(n for d, n in enumerate(a.shape) if d not in axes))


@implements("expand_dims")
def _expand_dims(a: TracedArray, axis: Any) -> TracedArray:
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = views.axes_of(tuple(given), a.ndim + len(given))
    rest = iter(a.shape)
    return views.reshape(
        a, tuple(1 if d in axes else next(rest) for d in range(a.ndim + len(axes)))
    )


@implements("flip")
def _flip(m: TracedArray, axis: Any = None) -> TracedArray:
    axes = views.axes_of(tuple(axis) if isinstance(axis, list) else axis, m.ndim)
    return m[tuple(slice(None, None, -1 if d in axes else 1) for d in range(m.ndim))]


implements("shape")(lambda a: a.shape)
implements("ndim")(lambda a: a.ndim)


@implements("size")
def _size(a: Any, axis: Any = None) -> int:
    return a.size if axis is None else a.shape[views.axis_of(axis, a.ndim)]


@implements("result_type")
def _result_type(*given: Any) -> np.dtype:
    return np.result_type(*(x.dtype if isinstance(x, TracedArray) else x for x in given))
