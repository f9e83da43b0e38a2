"""Writes through a computed mask: `x[x < 0] *= 0.1`.

How many elements there are depends on values. What is done to each of them alone is done to all of
the array, and only where the mask is set it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.arrays.operators import BINARY, COMPARE, UNARY
from nkigen_lite.frontend.arrays.promotion import operand, shape_of
from nkigen_lite.tensors.errors import ArgumentError, BroadcastError, DataDependentError


class Picked:
    """`x[mask]`: `every` is x with what was done to it, elsewhere too; the mask's axes begin at
    `first`. `error` has the place of the selection, and is raised by everything that needs its
    shape.
    """

    __slots__ = ("error", "every", "first", "mask", "was")

    def __init__(
        self, every: TracedArray, mask: TracedArray, first: int, error: DataDependentError
    ) -> None:
        self.every, self.mask, self.first, self.error = every, mask, first, error
        self.was = mask.memory.value

    def is_of(self, mask: Any, first: int, shape: tuple[int, ...]) -> bool:
        """Whether the same mask, which nothing was written to since, picks from this shape."""
        is_unchanged = mask is self.mask and mask.memory.value == self.was
        return is_unchanged and self.first == first and self.every.shape == shape

    def _with(self, every: TracedArray) -> Picked:
        return Picked(every, self.mask, self.first, self.error)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any
    ) -> Picked:
        if method != "__call__" or ufunc.nout != 1 or ufunc.signature or keywords:
            raise self.error
        return self._with(ufunc(*map(self._beside, inputs)))

    def _beside(self, given: Any) -> Any:
        """An operand for all of the array: of the same mask, or the same for all its places."""
        if isinstance(given, Picked):
            if not given.is_of(self.mask, self.first, self.every.shape):
                raise self.error
            return given.every
        lot = lot_of_all_places(shape_of(operand(given)), self.every.ndim, self.first, self.mask)
        if lot is None:
            raise self.error
        return np.reshape(given, lot) if shape_of(operand(given)) else given

    def into(self, ufunc: np.ufunc, other: Any) -> Picked:
        """`x[mask] += y`: in x's dtype, if NumPy converts so far in place."""
        made = ufunc(self, other).every
        if not np.can_cast(made.dtype, self.every.dtype, "same_kind"):
            raise ArgumentError(
                f"np.{ufunc.__name__}: {made.dtype} results do not go into {self.every.dtype} "
                "in place",
                hint="x = np.where(mask, …, x), which has a wider dtype",
            )  # fmt: skip
        if made.shape != self.every.shape:
            raise BroadcastError(
                f"np.{ufunc.__name__}: non-broadcastable output operand",
                expected=str(self.every.shape), got=str(made.shape),
            )  # fmt: skip
        return self._with(made.astype(self.every.dtype))

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise self.error

    def _raise(self, *_: Any, **__: Any) -> NoReturn:
        raise self.error


def lot_of_all_places(
    shape: tuple[int, ...], ndim: int, first: int, mask: TracedArray
) -> tuple[int, ...] | None:
    """The shape in which an operand of `x[mask]` stands beside all of x, which has `ndim` axes;
    None where it has an element for each place, or more axes."""
    rest = ndim - first - mask.ndim
    while len(shape) > first + 1 + rest and shape[0] == 1:
        shape = shape[1:]
    own = (1,) * (first + 1 + rest - len(shape)) + shape
    if len(own) > first + 1 + rest or own[first] != 1:
        return None
    return (*own[:first], *(1,) * mask.ndim, *own[first + 1 :])


def _operator(ufunc: np.ufunc, is_reflected: bool = False) -> Callable[..., Picked]:
    if is_reflected:
        return lambda self, other: ufunc(other, self)
    return lambda self, *others: ufunc(self, *others)


def _in_place(ufunc: np.ufunc) -> Callable[[Picked, Any], Picked]:
    return lambda self, other: self.into(ufunc, other)


_BY_ELEMENT = {name: f for name, f in BINARY.items() if f is not np.matmul}
_METHODS: dict[str, Callable[..., Any]] = {
    **{f"__{n}__": _operator(f) for n, f in (_BY_ELEMENT | COMPARE | UNARY).items()},
    **{f"__r{n}__": _operator(f, is_reflected=True) for n, f in _BY_ELEMENT.items()},
    **{f"__i{n}__": _in_place(f) for n, f in _BY_ELEMENT.items()},
    **dict.fromkeys(
        (
            "__array_function__", "__array__", "__bool__", "__len__", "__iter__", "__getitem__",
            "__setitem__", "__float__", "__int__", "__index__", "__contains__", "__matmul__",
            "__rmatmul__",
        ),
        Picked._raise,
    ),
}  # fmt: skip

for _name, _method in _METHODS.items():
    setattr(Picked, _name, _method)
