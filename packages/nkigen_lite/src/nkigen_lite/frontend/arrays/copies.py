"""Meaning of order=, copy= and casting=: reshapes, copies and conversions as in NumPy."""

from __future__ import annotations

from typing import Any

from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.promotion import asked_dtype, cast_value, check_casting, fresh
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.tensors.errors import UnsupportedKeywordError, ValueRangeError
from nkigen_lite.tensors.spec import Shape
from nkigen_lite.tensors.strides import in_order, reshaped, strided


def _named(order: Any) -> str:
    name = "C" if order is None else str(order).upper()
    if name not in ("C", "F", "A", "K"):
        raise ValueRangeError(
            "order must be one of 'C', 'F', 'A', or 'K'", got=repr(order), operand="order"
        )
    return name


def _slowest_first(x: TracedArray, order: Any) -> tuple[int, ...] | None:
    """The axes from the slowest to the fastest in this order; None where it is that of x's memory
    and not known."""
    name, axes = _named(order), tuple(range(x.ndim))
    if name in ("C", "F") or x.ndim < 2:
        return axes[::-1] if name == "F" else axes
    if x.element_strides is None:
        return None
    if name == "K":
        strides = x.element_strides
        return tuple(sorted(axes, key=lambda d: -abs(strides[d])))
    is_fortran = strided(x.shape[::-1], x.element_strides[::-1]) and not x.is_contiguous
    return axes[::-1] if is_fortran else axes


def _reading(x: TracedArray, order: Any) -> tuple[int, ...]:
    axes = _slowest_first(x, order)
    if axes is None:
        raise UnsupportedKeywordError(
            f"order={order!r} requires an order of memory that is not known here",
            hint="give order='C' or order='F'", operand="order",
        )  # fmt: skip
    return axes


def strides_like(x: TracedArray, order: Any, shape: Shape) -> tuple[int, ...] | None:
    """Of a new array like x in this order; None where NumPy's choice is not known."""
    axes = _slowest_first(x, order) if len(shape) == x.ndim else tuple(range(len(shape)))
    return None if axes is None else in_order(shape, axes)


@implements("copy")
def copied(a: TracedArray, order: Any = "K") -> TracedArray:
    """`np.copy`."""
    made = fresh(a.tape, a.value, a.dtype, scalar=False)
    made.element_strides = strides_like(a, order, a.shape)
    return made


def method_copied(self: TracedArray, order: Any = "C") -> TracedArray:
    """`x.copy()`."""
    return copied(self, order)


def flattened(self: TracedArray, order: Any = "C") -> TracedArray:
    """`x.flatten()`: always new memory."""
    transposed = views.transposed(self, _reading(self, order))
    value = self.tape.emit("reshape", transposed.value, shape=(self.size,))
    return fresh(self.tape, value, self.dtype, scalar=False)


@implements("ravel")
def raveled(a: TracedArray, order: Any = "C") -> TracedArray:
    """`np.ravel`: a view where the elements lie one after the other in this order, else a copy."""
    transposed = views.transposed(a, _reading(a, order))
    if transposed.is_contiguous:
        return views.reshape(transposed, (-1,))
    made = flattened(transposed)
    if a.element_strides is None:
        a.memory.unclear = made.memory.unclear = True
    return made


@implements("reshape")
def reshaped_as(a: TracedArray, shape: Any, order: Any = "C", copy: Any = None) -> TracedArray:
    """`np.reshape`."""
    name = _named(order)
    if name == "K":
        raise ValueRangeError("order 'K' is not permitted for reshaping", operand="order")
    new = views.new_shape(a, shape)
    if name == "A" or (name == "F" and a.ndim < 2 and len(new) < 2):
        axes = _reading(a, name)
        name = "C" if axes == tuple(range(a.ndim)) else "F"
    if name == "F":
        return views.transposed(_reshaped(views.transposed(a), new[::-1], copy))
    return _reshaped(a, new, copy)


def _reshaped(a: TracedArray, new: Shape, copy: Any) -> TracedArray:
    if copy:
        return views.reshape(copied(a, "C"), new)
    is_view = (
        a.element_strides is not None and reshaped(a.shape, a.element_strides, new) is not None
    )
    if copy is not None and not is_view and a.element_strides is not None:
        raise ValueRangeError("Unable to avoid creating a copy while reshaping.", operand="copy")
    if copy is not None and not is_view and a.shape != new:
        raise UnsupportedKeywordError(
            "copy=False: whether NumPy would have to copy is not known here", operand="copy"
        )
    return views.reshape(a, new)


@implements("astype")
def astype(x: TracedArray, dtype: Any, copy: Any = True) -> TracedArray:
    """`np.astype`."""
    return converted(x, dtype, copy=copy)


def converted(
    self: TracedArray, dtype: Any, order: Any = "K", casting: Any = "unsafe",
    copy: Any = True,
) -> TracedArray:  # fmt: skip
    """`x.astype`."""
    wide, held = asked_dtype(dtype)
    check_casting("astype", self, wide, casting)
    strides = strides_like(self, order, self.shape)
    if not copy and held is self.spec.dtype and wide == self.dtype and not self.is_scalar:
        if _named(order) == "K" or (
            self.element_strides is not None and self.element_strides == strides
        ):
            return self
        if self.element_strides is None and self.ndim > 1:
            raise UnsupportedKeywordError(
                "copy=False: whether NumPy would have to copy is not known here", operand="copy"
            )
    value = cast_value(self.tape, self.value, held)
    made = fresh(self.tape, value, wide, scalar=self.is_scalar)
    made.element_strides = strides
    return made
