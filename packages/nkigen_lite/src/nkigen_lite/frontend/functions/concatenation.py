"""Arrays put together and taken apart; triangles; arrays like others; choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.copies import flattened
from nkigen_lite.frontend.arrays.promotion import (
    as_value,
    asked_dtype,
    check_casting,
    common_dtype,
    fresh,
    operand,
    shape_of,
    tape_of,
)
from nkigen_lite.frontend.arrays.registry import Function, implements
from nkigen_lite.frontend.arrays.views import (
    axis_of,
)
from nkigen_lite.frontend.functions.shapes import with_axes
from nkigen_lite.tensors.errors import BroadcastError, ValueRangeError


@implements("concatenate")
def concatenate(
    arrays: Sequence[Any], axis: Any = 0, dtype: Any = None, casting: Any = "same_kind"
) -> TracedArray:
    """`np.concatenate`."""
    tape = tape_of(*arrays)
    given = [operand(a) for a in arrays]
    if axis is None:
        given, axis = (
            [flattened(a) if isinstance(a, TracedArray) else np.ravel(a) for a in given],
            0,
        )
    ndim = len(shape_of(given[0]))
    if ndim == 0:
        raise ValueRangeError("zero-dimensional arrays cannot be concatenated")
    axis = axis_of(axis, ndim)
    rest = {(len(s), s[:axis], s[axis + 1 :]) for s in map(shape_of, given)}
    if len(rest) > 1:
        raise BroadcastError(
            "all the input array dimensions except for the concatenation axis must match exactly",
            expected=f"equal lengths of all axes but axis {axis}",
            got=", ".join(str(shape_of(a)) for a in given),
            hint="np.broadcast_to or np.pad before, or another axis=",
        )
    makes = common_dtype("np.concatenate", given) if dtype is None else asked_dtype(dtype)[0]
    for a in given:
        check_casting("np.concatenate", a, makes, casting)
    values = [as_value(tape, a, makes, "concatenate") for a in given]
    value = values[0] if len(values) == 1 else tape.emit("concatenate", *values, axis=axis)
    return fresh(tape, value, makes, tuple(given), scalar=False)


@implements("stack")
def stack(
    arrays: Sequence[Any], axis: Any = 0, dtype: Any = None, casting: Any = "same_kind"
) -> TracedArray:
    """`np.stack`."""
    given = [operand(a) for a in arrays]
    shapes = {shape_of(a) for a in given}
    if len(shapes) > 1:
        raise ValueRangeError(
            "all input arrays must have the same shape", expected="one shape",
            got=str(sorted(shapes)), hint="np.broadcast_to or np.pad before; np.concatenate joins "
            "different lengths of one axis",
        )  # fmt: skip
    shape = shapes.pop()
    axis = axis_of(axis, len(shape) + 1)
    new = (*shape[:axis], 1, *shape[axis:])
    return concatenate([np.reshape(a, new) for a in given], axis, dtype, casting)


@implements("split")
def split(ary: TracedArray, indices_or_sections: Any, axis: Any = 0) -> list[TracedArray]:
    """`np.split`: views; a number of parts must divide the axis."""
    along = axis_of(axis, ary.ndim)
    n = ary.shape[along]
    if hasattr(indices_or_sections, "__index__"):
        parts = indices_or_sections.__index__()
        if parts <= 0 or n % parts:
            raise ValueRangeError(
                "array split does not result in an equal division",
                expected=f"a number that divides {n}",
                got=f"{n} / {parts}",
                hint="np.array_split makes parts of unequal length",
            )
        cuts = list(range(n // parts, n, n // parts)) if n else [0] * (parts - 1)
    else:
        cuts = [int(i) for i in indices_or_sections]
    bounds = zip([0, *cuts], [*cuts, n], strict=True)
    before = (slice(None),) * along
    return [ary[(*before, slice(a, b))] for a, b in bounds]


@implements("vstack")
def _vstack(tup: Sequence[Any], dtype: Any = None, casting: Any = "same_kind") -> Any:
    return concatenate([with_axes(x, 2) for x in tup], 0, dtype, casting)


@implements("hstack")
def _hstack(tup: Sequence[Any], dtype: Any = None, casting: Any = "same_kind") -> Any:
    parts = [with_axes(x, 1) for x in tup]
    along = 0 if len(shape_of(parts[0])) == 1 else 1
    return concatenate(parts, along, dtype, casting)


@implements("dstack")
def _dstack(tup: Sequence[Any]) -> Any:
    return concatenate([with_axes(x, 3) for x in tup], 2)


@implements("column_stack")
def _column_stack(tup: Sequence[Any]) -> Any:
    columns = [x if len(shape_of(operand(x))) > 1 else np.reshape(x, (-1, 1)) for x in tup]
    return concatenate(columns, 1)


@implements("append")
def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    return concatenate([arr, values], axis)


@implements("array_split")
def _array_split(ary: Array, indices_or_sections: Any, axis: Any = 0) -> list[Any]:
    """The first parts are one longer where the number of parts does not divide the axis."""
    if not hasattr(indices_or_sections, "__index__"):
        return split(ary, indices_or_sections, axis)
    parts = indices_or_sections.__index__()
    if parts <= 0:
        raise ValueRangeError("number sections must be larger than 0.")
    each, more = divmod(ary.shape[views.axis_of(axis, ary.ndim)], parts)
    return split(ary, [i * each + min(i, more) for i in range(1, parts)], axis)


def _split_along(axis: int) -> Function:
    def split_(ary: Array, indices_or_sections: Any) -> list[Any]:
        return split(ary, indices_or_sections, 0 if ary.ndim == 1 and axis == 1 else axis)

    return split_


@implements("unstack")
def _unstack(x: Array, axis: Any = 0) -> tuple[Any, ...]:
    return tuple(np.moveaxis(x, axis, 0))


implements("vsplit")(_split_along(0))


implements("hsplit")(_split_along(1))


implements("dsplit")(_split_along(2))
