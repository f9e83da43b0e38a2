"""Bytes of SBUF or PSUM of a tensor whose kernel fixed its address."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from neuroncore.effects.footprint import Footprint, footprint
from neuroncore.enums import MemorySpace

if TYPE_CHECKING:
    from neuroncore.memory import Storage
    from neuroncore.targets import Target


def absolute(storage: Storage, found: Footprint, target: Target) -> tuple[Footprint, ...]:
    """The bytes `found` of an on-chip tensor as bytes of its memory, one partition after the other.

    Byte b of partition p is p · (bytes per partition of the memory on `target`) + b, so footprints
    of two tensors in the same memory (`storage.space`) can be compared.
    Raises ValueError for a tensor without explicit address.
    """
    if storage.address is None or not storage.space.on_chip:
        raise ValueError(
            f"{storage.name or 'the tensor'} has no address in SBUF or PSUM; expected one "
            f"allocated with address=, got one in {storage.space} at {storage.address}"
        )
    partition, byte = storage.address
    memory = target.psum_bytes if storage.space is MemorySpace.psum else target.sbuf_bytes
    row = storage.free_elems * storage.dtype.itemsize
    parts = []
    for part in _inside_rows(found, row):
        first, column = divmod(part.offset, row)
        strides = tuple([s if s % row else s // row * memory for s in part.strides])
        offset = (partition + first) * memory + byte + column
        parts.append(footprint(offset, part.shape, strides, part.itemsize))
    return tuple(parts)


def _inside_rows(found: Footprint, row: int) -> Iterator[Footprint]:
    """`found` in parts: strides that are multiples of `row` bytes, and all else inside one row."""
    inner = [d for d, s in enumerate(found.strides) if s % row]
    span = found.itemsize + sum((found.shape[d] - 1) * found.strides[d] for d in inner)
    if found.offset % row + span <= row:
        yield found
    elif inner:
        yield from _cut_dimension(found, inner[0], row)
    else:
        yield from _cut_run(found, row)


def _cut_run(found: Footprint, row: int) -> Iterator[Footprint]:
    """A run that crosses rows: its head, its whole rows, its tail."""
    head = min(-found.offset % row, found.itemsize)
    rows, tail = divmod(found.itemsize - head, row)
    for at, count, size in ((0, 1, head), (head, rows, row), (head + rows * row, 1, tail)):
        if count and size:
            shape, strides = (count, *found.shape), (row, *found.strides)
            yield Footprint(found.offset + at, shape, strides, size)


def _cut_dimension(found: Footprint, dim: int, row: int) -> Iterator[Footprint]:
    """One dimension taken apart: into rows where each row holds the same steps, else into steps."""
    size, stride = found.shape[dim], found.strides[dim]
    shape = (*found.shape[:dim], *found.shape[dim + 1 :])
    strides = (*found.strides[:dim], *found.strides[dim + 1 :])
    faster = Footprint(found.offset % stride, found.shape[dim + 1 :], strides[dim:], found.itemsize)
    if row % stride or faster.bounds()[1] > stride:
        for i in range(size):
            step = Footprint(found.offset + i * stride, shape, strides, found.itemsize)
            yield from _inside_rows(step, row)
        return
    per_row = row // stride
    head = min(size, -((found.offset % row - row) // stride) % per_row)
    rows, tail = divmod(size - head, per_row)
    for at, count, steps in ((0, 1, head), (head, rows, per_row), (head + rows * per_row, 1, tail)):
        if count and steps:
            yield Footprint(
                found.offset + at * stride,
                (count, steps, *shape),
                (row, stride, *strides),
                found.itemsize,
            )
