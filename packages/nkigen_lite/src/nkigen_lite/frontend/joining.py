"""Arrays put together and taken apart; triangles; arrays like others; choice."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from nkigen_lite.errors import ArgumentError, BroadcastError, ValueRangeError
from nkigen_lite.frontend.array import TracedArray
from nkigen_lite.frontend.copying import copied, flattened, strides_like
from nkigen_lite.frontend.promotion import (
    PYTHON_NUMBERS,
    as_value,
    asked_dtype,
    check_casting,
    constant_value,
    dtype_of,
    fresh,
    operand,
    resolved,
    shape_of,
    traced,
)
from nkigen_lite.frontend.tape import Tape
from nkigen_lite.frontend.views import (
    as_shape,
    axis_of,
    broadcast_to,
)


def tape_of(*given: Any) -> Tape:
    """The tape of the first traced array."""
    return next(x.tape for x in given if isinstance(x, TracedArray))


def common_dtype(function: str, given: Sequence[Any]) -> np.dtype:
    """np.result_type, where Python numbers do not count for more than their kind."""
    kinds = [x if type(x) in PYTHON_NUMBERS else dtype_of(x) for x in given]
    return resolved(function, lambda: np.result_type(*kinds))


def where(condition: Any, x: Any = None, y: Any = None) -> TracedArray:
    """`np.where` of three arguments."""
    if x is None or y is None:
        raise ArgumentError(
            "np.where of a condition alone has a shape that depends on values",
            hint="np.where(condition, x, y)",
        )
    tape = tape_of(condition, x, y)
    condition, x, y = (operand(a) for a in (condition, x, y))
    try:
        np.broadcast_shapes(*map(shape_of, (condition, x, y)))
    except ValueError:
        raise BroadcastError("np.where: operands could not be broadcast together") from None
    dtype = common_dtype("np.where", (x, y))
    test = as_value(tape, condition, np.dtype(bool), "where")
    branches = (as_value(tape, a, dtype, "where") for a in (x, y))
    return fresh(tape, tape.emit("where", test, *branches), dtype, (condition, x, y))


def clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None,
    max: Any = None,
) -> Any:  # fmt: skip
    """`np.clip`: minimum(maximum(a, low), high)."""
    low: Any = min if a_min is None else a_min
    high: Any = max if a_max is None else a_max
    tape = tape_of(a, low, high, out)
    if out is not None:
        return np.positive(clip(traced(tape, a), low, high), out=out)
    given = [x if x is None else operand(x) for x in (a, low, high)]
    if low is None and high is None:
        return copied(a)
    kinds: Any = [np.zeros(0, x.dtype) if hasattr(x, "dtype") else x for x in given]
    makes = resolved("np.clip", lambda: np.clip(*kinds).dtype)
    result: Any = fresh(tape, as_value(tape, given[0], makes, "np.clip"), makes, (given[0],))
    for bound, choose in zip((low, high), (np.maximum, np.minimum), strict=True):
        if bound is not None and not _is_beyond(bound, makes):
            result = choose(result, fresh(tape, as_value(tape, bound, makes, "np.clip"), makes))
    return result


def _is_beyond(bound: Any, dtype: np.dtype) -> bool:
    """Whether no integer of this dtype reaches the bound."""
    if type(bound) is not int or dtype.kind not in "iu":
        return False
    return not np.iinfo(dtype).min <= bound <= np.iinfo(dtype).max


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


def tril(m: TracedArray, k: Any = 0) -> TracedArray:
    return _triangle("tril", m, k)


def triu(m: TracedArray, k: Any = 0) -> TracedArray:
    return _triangle("triu", m, k)


def _triangle(op: str, m: TracedArray, k: Any) -> TracedArray:
    if m.ndim < 2:
        n = m.size
        m = broadcast_to(m, (n, n)) if m.ndim else m
    if not m.ndim:
        raise ValueRangeError(f"np.{op} of an array of rank 0")
    diagonal = resolved(f"np.{op}", lambda: index(k))
    return fresh(m.tape, m.tape.emit(op, m.value, k=diagonal), m.dtype, (m,))


def full_like(
    a: TracedArray, fill_value: Any, dtype: Any = None, order: Any = "K", shape: Any = None
) -> TracedArray:
    """`np.full_like` and its kin; np.empty_like gives zeros."""
    makes = a.dtype if dtype is None else asked_dtype(dtype)[0]
    new = a.shape if shape is None else as_shape(shape)
    given = operand(fill_value)
    value = as_value(a.tape, given, makes, "where") if isinstance(given, TracedArray) else (
        constant_value(a.tape, given, makes, "np.full_like")
    )  # fmt: skip
    if a.tape.spec(value).shape != new:
        value = a.tape.emit("broadcast_to", value, shape=new)
    made = fresh(a.tape, value, makes, scalar=False)
    made.element_strides = strides_like(a, order, new)
    return made


def empty_like(
    prototype: TracedArray, dtype: Any = None, order: Any = "K", shape: Any = None
) -> TracedArray:
    return full_like(prototype, 0, dtype, order, shape)


def zeros_like(
    a: TracedArray, dtype: Any = None, order: Any = "K", shape: Any = None
) -> TracedArray:
    return full_like(a, 0, dtype, order, shape)


def ones_like(
    a: TracedArray, dtype: Any = None, order: Any = "K", shape: Any = None
) -> TracedArray:
    return full_like(a, 1, dtype, order, shape)
