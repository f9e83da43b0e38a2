"""Arrays whose values are known: constants of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from nki_dtypes import DType
from nkigen_lite.tensors.spec import Spec


class Constant:
    """An array that never changes, equal to another when spec and bits are equal.

    `array` has the storage dtype of `dtype` (bool for bool_) and is read-only. `uniform` is the
    element that is everywhere (stored once for any shape), or None. `name` is the user's variable.
    """

    __slots__ = ("_bits", "array", "name", "spec", "uniform")

    def __init__(self, array: np.ndarray, dtype: DType, name: str = "") -> None:
        self.name = name
        self.spec = Spec(array.shape, dtype)
        first = array[(0,) * array.ndim] if array.size else None
        self.uniform: Any = first if first is not None and _all_are(first, array) else None
        kept = np.array(array, copy=True, order="C") if self.uniform is None else (
            np.broadcast_to(np.array(first, array.dtype), array.shape)
        )  # fmt: skip
        kept.flags.writeable = False
        self.array = kept
        self._bits = kept.tobytes() if self.uniform is None else self.uniform.tobytes()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return (self.spec, self._bits) == (other.spec, other._bits)

    def __hash__(self) -> int:
        return hash((self.spec, self._bits))

    def __repr__(self) -> str:
        return f"Constant({self.spec})"


def _all_are(first: Any, array: np.ndarray) -> bool:
    """Whether every element has the bits of the first."""
    if not any(n > 1 and s for n, s in zip(array.shape, array.strides, strict=True)):
        return True
    bits = np.dtype(f"u{array.dtype.itemsize}")
    return bool((np.ascontiguousarray(array).view(bits) == first.view(bits)).all())


def full(value: Any, spec: Spec) -> Constant:
    """`value` in every element of `spec`, held once."""
    one = np.asarray(value).astype(spec.storage)
    return Constant(np.broadcast_to(one, spec.shape), spec.dtype)
