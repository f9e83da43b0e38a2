"""Views of traced arrays, and copies."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.memory import ViewStep
from nkigen_lite.frontend.arrays.promotion import fresh
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.tensors.errors import ArgumentError, AxisError, BroadcastError, ValueRangeError
from nkigen_lite.tensors.spec import Shape
from nkigen_lite.tensors.strides import reshaped


def axis_of(axis: Any, ndim: int) -> int:
    """The axis counted from 0. Raises AxisError, which is also NumPy's."""
    if isinstance(axis, (bool, np.bool_)):
        raise ArgumentError("an integer is required for the axis", got=repr(axis), operand="axis")
    try:
        number = axis.__index__()
    except AttributeError:
        raise ArgumentError(f"{axis!r} is not an axis", expected="an integer") from None
    if not -ndim <= number < ndim:
        raise AxisError(
            f"axis {number} is out of bounds for array of dimension {ndim}", operand="axis",
            expected=f"an axis from {-ndim} to {ndim - 1}" if ndim else "no axis: it is a number",
            got=str(number), hint="count the axes of x.shape, from 0 or from -1 at the end",
        )  # fmt: skip
    return number % ndim


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from 0, in order; None for all. Raises AxisError, or for repeated ones as NumPy
    a ValueError."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple) else (axis,)
    axes = [axis_of(a, ndim) for a in given]
    if len(set(axes)) < len(axes):
        raise ValueRangeError("duplicate value in 'axis'", got=repr(axis), operand="axis")
    return tuple(sorted(axes))


def part(
    x: TracedArray, op: str, attrs: dict[str, Any], shape: Shape, strides: tuple[int, ...] | None,
    read_only_by: str = "",
) -> TracedArray:  # fmt: skip
    """A view: one more step on the way to the elements."""
    spec = type(x.spec)(shape, x.spec.dtype)
    path = (*x.path, ViewStep(op, attrs, read_only_by))
    return TracedArray(x.tape, x.memory, path, spec, x.dtype, strides)


def read_only(x: TracedArray, by: str) -> TracedArray:
    """The same elements, not to be written to from here."""
    return part(x, "reshape", {"shape": x.shape}, x.shape, x.element_strides, by)


def transposed(x: TracedArray, axes: Sequence[int] | None = None) -> TracedArray:
    """`np.transpose`."""
    if axes is None:
        order = tuple(reversed(range(x.ndim)))
    else:
        order = tuple(axis_of(a, x.ndim) for a in axes)
        if len(order) != x.ndim:
            raise ValueRangeError("axes don't match array", got=repr(tuple(axes)))
        if len(set(order)) < len(order):
            raise ValueRangeError("repeated axis in transpose", got=repr(tuple(axes)))
    if order == tuple(range(x.ndim)):
        return part(x, "reshape", {"shape": x.shape}, x.shape, x.element_strides)
    strides = None if x.element_strides is None else tuple(x.element_strides[a] for a in order)
    return part(x, "transpose", {"axes": order}, tuple(x.shape[a] for a in order), strides)


def as_shape(shape: Any) -> Shape:
    """A shape as NumPy takes it: one integer or several."""
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    try:
        return tuple(int(n.__index__()) for n in given)
    except AttributeError:
        raise ArgumentError(f"{shape!r} is not a shape", expected="integers") from None


def new_shape(x: TracedArray, shape: Any) -> Shape:
    """A shape with -1 filled in. Raises a ValueError where the elements do not fit."""
    new = as_shape(shape)
    if new.count(-1) > 1:
        raise ValueRangeError(
            "can only specify one unknown dimension", expected="one -1 at most", got=str(new),
            operand="shape", hint="write the other lengths as numbers",
        )  # fmt: skip
    known = -prod(new)
    if new.count(-1) == 1 and known and x.size % known == 0:
        new = tuple(x.size // known if n == -1 else n for n in new)
    if any(n < 0 for n in new) or prod(new) != x.size:
        raise BroadcastError(
            f"cannot reshape array of size {x.size} into shape {as_shape(shape)}",
            expected=f"lengths whose product is {x.size}", got=str(x.spec), operand="shape",
            hint="-1 represents the one length that follows from the others",
        )  # fmt: skip
    return new


def reshape(x: TracedArray, shape: Any) -> TracedArray:
    """`np.reshape`: a view where NumPy gives one, else a copy; where its memory order is not
    known, neither may be written to from then on."""
    new = new_shape(x, shape)
    keeps_axes = tuple(n for n in x.shape if n != 1) == tuple(n for n in new if n != 1)
    strides = None if x.element_strides is None else reshaped(x.shape, x.element_strides, new)
    if strides is not None or keeps_axes:
        return part(x, "reshape", {"shape": new}, new, strides)
    value = x.tape.emit("reshape", x.value, shape=new)
    result = fresh(x.tape, value, x.dtype, scalar=False)
    if x.element_strides is None:
        x.memory.unclear = result.memory.unclear = True
    return result


@implements("broadcast_to")
def broadcast_to(array: TracedArray, shape: Any) -> TracedArray:
    """`np.broadcast_to`: a view that cannot be written to."""
    new = as_shape(shape)
    try:
        fits = np.broadcast_shapes(array.shape, new) == new
    except ValueError:
        fits = False
    if not fits:
        raise BroadcastError(
            "operands could not be broadcast together with remapped shapes",
            expected="axes of one element, or of the new length", got=f"{array.shape} to {new}",
            hint="add axes of one element where they belong: x[:, None]",
        )  # fmt: skip
    return part(array, "broadcast_to", {"shape": new}, new, None, "np.broadcast_to")
