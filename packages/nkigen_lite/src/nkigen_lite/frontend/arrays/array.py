"""The array that a traced function sees: NumPy's, without values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from nkigen_lite.frontend.arrays.memory import Memory, ViewStep, values_along
from nkigen_lite.frontend.arrays.registry import suggestion
from nkigen_lite.frontend.arrays.tape import Tape
from nkigen_lite.tensors.errors import (
    ArgumentError,
    DataDependentError,
    MissingAttributeError,
    UnsupportedFunctionError,
    ValueRangeError,
)
from nkigen_lite.tensors.spec import Spec
from nkigen_lite.tensors.strides import strided

Strides = tuple[int, ...] | None
F = TypeVar("F", bound=Callable[..., Any])


Array = Any
"""A traced array where NumPy's stubs say that its functions give arrays of NumPy's own."""


class TracedArray:
    """A view of some memory, by the steps that lead from the whole to the part.

    `dtype` is what NumPy would say, 64-bit types included; `spec` is what the graph holds.
    `element_strides` count elements of the memory; None where NumPy's choice is not known.
    `is_scalar` marks what NumPy returns as a number rather than as an array of rank 0.

    NumPy's protocols, subscripts, operators and methods are added by `method` where they are
    implemented, above this module.
    """

    __slots__ = ("dtype", "element_strides", "is_scalar", "memory", "path", "spec", "tape")

    def __init__(
        self,
        tape: Tape,
        memory: Memory,
        path: tuple[ViewStep, ...],
        spec: Spec,
        dtype: np.dtype,
        element_strides: Strides,
        is_scalar: bool = False,
    ) -> None:
        self.tape, self.memory, self.path, self.spec = tape, memory, path, spec
        self.dtype, self.element_strides, self.is_scalar = dtype, element_strides, is_scalar

    # ------------------------------------------------------------ what it is

    @property
    def __class__(self) -> Any:
        """The class that `isinstance` sees: np.ndarray, or the type of number."""
        return self.dtype.type if self.is_scalar else np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.spec.shape

    @property
    def ndim(self) -> int:
        return self.spec.ndim

    @property
    def size(self) -> int:
        return self.spec.size

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes, as NumPy has them. Raises UnsupportedFunctionError where that is not known."""
        if self.element_strides is None:
            raise UnsupportedFunctionError(
                "the strides of this array are not known: NumPy chooses them by its operands",
                got=str(self.spec), hint="take shapes, or make a copy in C order: x.copy()",
            )  # fmt: skip
        return tuple(stride * self.itemsize for stride in self.element_strides)

    @property
    def value(self) -> str:
        """The name of its current value in the graph."""
        return values_along(self.tape, self.memory, self.path)[-1]

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements are known to lie one after the other in C order."""
        strides = self.element_strides
        return strides is not None and strided(self.shape, strides)

    def __len__(self) -> int:
        if not self.ndim:
            raise ArgumentError("len() of an array of rank 0", got=str(self.spec))
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<traced {self.spec}>"

    # -------------------------------------------- values that do not exist yet

    def _no_value(self, what: str) -> NoReturn:
        raise DataDependentError(
            f"{what} needs the values of an array that is only computed when the kernel runs",
            got=str(self.spec),
            hint="branch on shapes, or choose with np.where, np.minimum, np.maximum",
        )

    def __bool__(self) -> bool:
        self._no_value("a condition")

    def __int__(self) -> int:
        self._no_value("int()")

    def __float__(self) -> float:
        self._no_value("float()")

    def __complex__(self) -> complex:
        self._no_value("complex()")

    def __index__(self) -> int:
        self._no_value("an index")

    def __hash__(self) -> int:
        raise ArgumentError("unhashable type: 'numpy.ndarray'", got=str(self.spec))

    def __round__(self, *_digits: Any) -> NoReturn:
        raise ArgumentError(
            "type numpy.ndarray doesn't define __round__ method", got=str(self.spec),
            hint="np.round(x)",
        )  # fmt: skip

    def __format__(self, wanted: str) -> str:
        if not wanted:
            return repr(self)
        if self.is_scalar:
            self._no_value(f"the text {wanted!r} of a number")
        raise ArgumentError(
            "unsupported format string passed to numpy.ndarray.__format__", got=repr(wanted)
        )

    def __delitem__(self, key: Any) -> NoReturn:
        raise ValueRangeError(
            "cannot delete array elements", got=str(self.spec),
            hint="take what stays: x[1:], np.concatenate([x[:i], x[i + 1:]])",
        )  # fmt: skip

    def __contains__(self, item: object) -> bool:
        self._no_value("`in`")

    def item(self, *args: Any) -> Any:
        self._no_value("item()")

    def tolist(self) -> Any:
        self._no_value("tolist()")

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        error = DataDependentError(
            "an array of NumPy's own cannot hold values that only exist when the kernel runs",
            got=str(self.spec),
            hint="a copy: x.copy(); as an array: np.zeros_like(x, shape=…, dtype=…) or np.stack, "
            "not np.zeros, np.array, np.asarray; as indices of a table of NumPy's own (table[i]): "
            "take the table as an argument of the function",
        )
        if sys._getframe(1).f_globals.get("__name__", "").startswith("numpy."):
            self.tape.errors.append(error)
        raise error

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            if name.startswith("__"):
                raise AttributeError(f"'ndarray' object has no attribute {name!r}")
            raise MissingAttributeError(
                f"'ndarray' object has no attribute {name!r}", got=f".{name}",
                expected="an attribute of np.ndarray", hint="many functions are not methods: np.…",
            )  # fmt: skip
        raise UnsupportedFunctionError(f"ndarray.{name} is not translated", hint=suggestion(name))


def method(*names: str) -> Callable[[F], F]:
    """Make a function a method of traced arrays, under these names."""

    def register(implementation: F) -> F:
        for name in names:
            setattr(TracedArray, name, implementation)
        return implementation

    return register
