"""Arrays like other arrays."""

from __future__ import annotations

from typing import Any

from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.copies import strides_like
from nkigen_lite.frontend.arrays.promotion import (
    as_value,
    asked_dtype,
    constant_value,
    fresh,
    operand,
)
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.frontend.arrays.views import (
    as_shape,
)


@implements("full_like")
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


@implements("empty_like")
def empty_like(
    prototype: TracedArray, dtype: Any = None, order: Any = "K", shape: Any = None
) -> TracedArray:
    return full_like(prototype, 0, dtype, order, shape)


@implements("zeros_like")
def zeros_like(
    a: TracedArray, dtype: Any = None, order: Any = "K", shape: Any = None
) -> TracedArray:
    return full_like(a, 0, dtype, order, shape)


@implements("ones_like")
def ones_like(
    a: TracedArray, dtype: Any = None, order: Any = "K", shape: Any = None
) -> TracedArray:
    return full_like(a, 1, dtype, order, shape)
