"""Makes one buffer of several: tiles that a kernel keeps in a Python list and uses by index.

    for k …: t_k = buffer(float32[128, 512], sbuf)  →  t = buffer(float32[128, K, 512], sbuf)
             … t_k[:, 0:64] …                               … t[:, k, 0:64] …

On chip the extra dimension follows the partitions, in HBM it comes first. Every member is
allocated once and all are alive together, so content, poison and PSUM's written bits stay with
their elements.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.integers.affine import Affine
from neuroncore.program.ir.nodes import Access, Buffer
from neuroncore.program.ir.traversal import Ranges
from neuroncore.program.loop_rerolling.statement_table import Use
from neuroncore.targets import TARGETS

_BANK = TARGETS["trn2"].psum_bank_bytes  # the same on every generation
_MOST = {
    MemorySpace.psum: TARGETS["trn2"].psum_bytes,
    MemorySpace.sbuf: TARGETS["trn1"].usable_sbuf_bytes,
}


@dataclass(frozen=True, slots=True)
class Fold:
    """Buffers, all alike, to become one; it takes the first one's name. Members are numbers."""

    members: tuple[int, ...]


def can_join(buffer: Buffer, count: int) -> bool:
    """Whether so many of the buffer fit one."""
    if buffer.address is not None:
        return False
    if not buffer.space.on_chip:
        return True
    size = buffer.free_bytes
    aligned = buffer.space is not MemorySpace.psum or not (size % _BANK and _BANK % size)
    return aligned and size * count <= _MOST[buffer.space]


def can_move(use: Use, buffer: Buffer, constants: np.ndarray) -> bool:
    """Whether accesses like this one to members, with these constants in their offsets, can be
    rewritten: each loop variable moves them over whole partitions or inside one, not both.
    """
    access, ranges = use
    size = buffer.free_bytes if buffer.space.on_chip else buffer.num_bytes
    if access.indirect is not None or size % _width(access, buffer):
        return False
    if not buffer.space.on_chip:
        return True
    row = _row(access, buffer)
    if access.shape[0] > 1 and access.strides[0] != row:
        return False  # a DMA that skips or repeats partitions
    inside = tuple(term for term in access.offset.terms if term[1] % row)
    if not inside:
        return True
    start, moved = _at_start(access, ranges), Affine(0, inside)
    low, high = moved.bounds(ranges)
    begun = moved.value({name: ranges[name][0] for name, _ in inside})
    columns = (constants + start) % row - begun
    return bool(columns.min() + low >= 0 and columns.max() + high < row)


def _at_start(access: Access, ranges: Ranges) -> int:
    """The loops' contribution to an offset in their first iteration."""
    return sum(c * ranges[name][0] for name, c in access.offset.terms)


def _width(access: Access, buffer: Buffer) -> int:
    return (access.dtype or buffer.dtype).itemsize


def _row(access: Access, buffer: Buffer) -> int:
    return max(1, buffer.free_bytes // _width(access, buffer))


def joined(buffer: Buffer, count: int) -> Buffer:
    """One buffer for `count` of them."""
    head, tail = (1, 1) if buffer.space.on_chip else (0, 0)
    return replace(buffer, shape=(*buffer.shape[:head], count, *buffer.shape[tail:]))


def in_joined(use: Use, buffer: Buffer, count: int) -> Access:
    """The access to the first of `count` members, as one to the buffer of all."""
    access = use.access
    if not buffer.space.on_chip:
        return access
    row = _row(access, buffer)
    first, constant = np.zeros(1, np.int64), np.array([access.offset.constant])
    offset = Affine(int(offsets_in_joined(use, buffer, count, first, constant)[0]))
    for variable, c in access.offset.terms:
        offset += Affine.variable(variable, c * count if c % row == 0 else c)
    return replace(access, offset=offset, strides=(row * count, *access.strides[1:]))


def offsets_in_joined(
    use: Use, buffer: Buffer, count: int, numbers: np.ndarray, constants: np.ndarray
) -> np.ndarray:
    """The constants of the offsets of accesses like this one to members by their numbers, there
    `constants`, in the buffer of all.
    """
    access, ranges = use
    if not buffer.space.on_chip:
        return constants + numbers * (buffer.num_bytes // _width(access, buffer))
    row = _row(access, buffer)
    partitions, columns = np.divmod(constants + _at_start(access, ranges), row)
    start = sum(
        (c * count if c % row == 0 else c) * ranges[name][0] for name, c in access.offset.terms
    )
    return partitions * row * count + columns + numbers * row - start
