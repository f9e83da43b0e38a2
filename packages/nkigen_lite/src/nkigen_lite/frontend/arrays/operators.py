"""Python's operators as universal functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays.array import TracedArray


def in_place(ufunc: np.ufunc) -> Callable[[TracedArray, Any], Any]:
    """`x += y`: into x's memory, except where x is a number, which names no memory."""

    def operator(self: TracedArray, other: Any) -> Any:
        return ufunc(self, other) if self.is_scalar else ufunc(self, other, out=(self,))

    return operator


def binary(ufunc: np.ufunc) -> Callable[[TracedArray, Any], Any]:
    """`x + y`."""
    return lambda self, other: ufunc(self, other)


def reflected(ufunc: np.ufunc) -> Callable[[TracedArray, Any], Any]:
    """`y + x`."""
    return lambda self, other: ufunc(other, self)


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.true_divide,
    "floordiv": np.floor_divide, "mod": np.remainder, "pow": np.power, "matmul": np.matmul,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "lshift": np.left_shift,
    "rshift": np.right_shift,
}  # fmt: skip


COMPARE = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
    "ge": np.greater_equal,
}  # fmt: skip


UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}


def _power(self: TracedArray, other: Any) -> Any:
    """`x ** 2` is np.square to NumPy, which for bool has another type than np.power."""
    is_square = type(other) is int and other == 2 and not self.is_scalar
    return np.square(self) if is_square else np.power(self, other)


OPERATORS: dict[str, Callable[..., Any]] = {
    **{f"__{n}__": binary(f) for n, f in (BINARY | COMPARE).items()},
    **{f"__r{n}__": reflected(f) for n, f in BINARY.items()},
    **{f"__i{n}__": in_place(f) for n, f in BINARY.items()},
    **{f"__{n}__": lambda self, ufunc=f: ufunc(self) for n, f in UNARY.items()},
    "__pow__": _power,
    "__divmod__": lambda self, other: (self // other, self % other),
    "__rdivmod__": lambda self, other: (other // self, other % self),
}
"""Python's operators; each is one universal function."""
