"""Tensors at fixed addresses: their bytes as bytes of SBUF or PSUM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from neuroncore.effects import Footprint, absolute, footprint
from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.memory import Storage
from neuroncore.program import Affine, Buffer
from tokenplan.kernel.model import Buffer as Memory

Trips = Mapping[str, tuple[int, int]]
"""First and last iteration of each loop."""


def has_address(tensor: Buffer) -> bool:
    """Whether the kernel fixed where on chip the tensor lies."""
    return tensor.address is not None and tensor.space.on_chip


def memory_of(tensor: Buffer, core: NeuronCore) -> Memory:
    """The buffer that all tensors with addresses in this memory share."""
    row = _row_bytes(tensor.space, core)
    return Memory(f"{tensor.space.name}@", tensor.space.name, (core.target.partitions, row), 1)


def is_memory(buffer: Memory) -> bool:
    """Whether the buffer is what all tensors with addresses in a memory share."""
    return buffer.id == f"{buffer.space}@"


def in_memory(
    tensor: Buffer, found: Footprint, offset: Affine, trips: Trips, core: NeuronCore
) -> Iterator[tuple[Affine, Footprint, str | None]]:
    """Where `found`, moved by `offset` bytes, lies: affine offset, footprint, why it is not exact.

    Loops that move an access by whole partitions move it in the memory likewise, loops that move it
    inside its partitions as they do in the tensor. An access that does both in one step, or leaves
    a partition on the way, is given as all of its tensor.
    """
    row, memory = tensor.free_bytes, _row_bytes(tensor.space, core)
    across = Affine(0, tuple((n, c) for n, c in offset.terms if c % row == 0))
    along = Affine(0, tuple((n, c) for n, c in offset.terms if c % row))
    low, high = along.bounds(trips)
    storage = Storage(np.empty(0), tensor.shape, tensor.dtype, tensor.space, address=tensor.address)
    found = found.moved(offset.constant)
    parts = list(absolute(storage, found, core.target))
    assert tensor.address is not None
    left = tensor.address[1]
    if any(not _stays(part, left, row, memory, low, high) for part in parts):
        everything = footprint(0, (tensor.size,), (tensor.dtype.itemsize,), tensor.dtype.itemsize)
        for part in absolute(storage, everything, core.target):
            yield Affine(part.offset), part, "its offset crosses partitions"
        return
    moved = Affine(0, tuple((n, c // row * memory) for n, c in across.terms)) + along
    for part in parts:
        yield moved + part.offset, part, None


def _stays(part: Footprint, left: int, row: int, memory: int, low: int, high: int) -> bool:
    """Whether the part stays inside its partitions while it is moved by `low` to `high` bytes."""
    inside = [(n - 1) * s for n, s in zip(part.shape, part.strides, strict=True) if s % memory]
    column = part.offset % memory - left
    return column + low >= 0 and column + high + sum(inside) + part.itemsize <= row


def _row_bytes(space: MemorySpace, core: NeuronCore) -> int:
    return core.target.psum_bytes if space is MemorySpace.psum else core.target.sbuf_bytes
