"""Shapes and destinations that several instructions share."""

from __future__ import annotations

from collections.abc import Callable

from neuroncore.enums import MemorySpace
from neuroncore.instructions._record import Call
from neuroncore.spec import Spec
from nki_dtypes import DType

Result = tuple[tuple[int, ...], DType, MemorySpace]


def like(name: str) -> Callable[[Call], Result]:
    """0.1's inferred destination: shape and dtype of operand `name`, in SBUF."""

    def result(call: Call) -> Result:
        spec: Spec = getattr(call, name)
        return spec.shape, spec.dtype, MemorySpace.sbuf

    return result


def common_shape(*specs: Spec) -> tuple[int, ...]:
    """The shape in which element-wise operands meet: their own if all agree, else (P, F)."""
    first = specs[0]
    if all(s.shape == first.shape for s in specs):
        return first.shape
    return first.partitions, first.free


def per_partition(shape: tuple[int, ...]) -> tuple[int, ...]:
    """(P, 1, …, 1): one value per partition against a tile of `shape`."""
    return (shape[0],) + (1,) * (len(shape) - 1)
