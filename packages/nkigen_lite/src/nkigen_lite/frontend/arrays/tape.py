"""One tracing: the graph that grows, and where in the user's source it grows."""

from __future__ import annotations

import sys
from itertools import chain
from typing import Any

import numpy as np

from neuroncore.errors import KernelError, find_place
from neuroncore.source_location import kernel_frame
from nki_dtypes import DType
from nkigen_lite.ir import Builder
from nkigen_lite.tensors.spec import Spec


class Tape:
    """Operations recorded in order, each with the user's line."""

    def __init__(self, name: str) -> None:
        self.build = Builder(name)
        self.errors: list[KernelError] = []
        """Errors raised inside functions of NumPy's own, which may catch them
        (np.array_equal of lists: False)."""

    def emit(self, op: str, *operands: str, **attrs: Any) -> str:
        """The value of an operation, made at the user's current line; none for a view of all."""
        if op == "reshape" and tuple(attrs["shape"]) == self.spec(operands[0]).shape:
            return operands[0]
        return self.build.emit(op, *operands, origin=find_place(), **attrs)

    def constant(self, array: np.ndarray, dtype: DType, named: Any = None) -> str:
        """An array as a value; `named` is the user's object that it is made of."""
        return self.build.constant(array, dtype, find_place(), _variable(named))

    def fill(self, value: Any, dtype: DType, shape: tuple[int, ...] = ()) -> str:
        """One number everywhere."""
        return self.build.fill(value, dtype, shape, origin=find_place())

    def spec(self, value: str) -> Spec:
        return self.build.specs[value]


def _variable(given: Any) -> str:
    """The variable of the user's function or module that has this object, if one has."""
    frame = kernel_frame(sys._getframe(1))
    if frame is None or given is None:
        return ""
    every = chain(frame.f_locals.items(), frame.f_globals.items())
    return next((name for name, value in every if value is given), "")
