"""Capacity for slots of on-chip buffers: bytes of SBUF, banks of PSUM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from neuroncore.targets import Target, resolve_target
from tokenplan.kernel.model import Buffer, Kernel

SBUF, PSUM = "sbuf", "psum"


@dataclass(frozen=True, slots=True)
class Held:
    """The occupancy by buffers of SBUF (bytes per partition) and of PSUM (banks) at once."""

    sbuf: int
    psum: int

    def fits(self, target: Target) -> bool:
        return self.sbuf <= target.usable_sbuf_bytes and self.psum <= target.psum_banks


def held(kernel: Kernel, slots: Mapping[str, int]) -> Held:
    """Every buffer in as many places as it has, none of them shared with another buffer.

    Tensors at fixed addresses contain all up to the end of the last of them.
    """
    target = resolve_target(kernel.target)
    sizes = {SBUF: 0, PSUM: 0}
    for buffer in kernel.buffers.values():
        if buffer.space in sizes:
            size = _fixed(kernel, buffer) if _is_memory(buffer) else _row(buffer)
            if buffer.space == PSUM:
                size = -(-size // target.psum_bank_bytes)
            sizes[buffer.space] += size * slots.get(buffer.id, 1)
    return Held(sizes[SBUF], sizes[PSUM])


def rotating(kernel: Kernel) -> dict[str, int]:
    """On-chip buffers that are allocated in iterations → how often they are made."""
    loops = kernel.loops()
    return {
        buffer.id: prod(loops[loop].trips for loop in buffer.scope)
        for buffer in kernel.buffers.values()
        if buffer.scope and buffer.space in (SBUF, PSUM)
    }


def _row(buffer: Buffer) -> int:
    return prod(buffer.shape[1:]) * buffer.itemsize


def _is_memory(buffer: Buffer) -> bool:
    return buffer.id.endswith("@")


def _fixed(kernel: Kernel, memory: Buffer) -> int:
    """The last byte of a partition that any access to the whole memory reaches, and one."""
    loops, row, most = kernel.loops(), _row(memory), 0
    for op in kernel.ops():
        trips = {loop: (0, max(0, loops[loop].trips - 1)) for loop in op.loops}
        for access in op.accesses:
            if access.buffer == memory.id:
                inner = sum(
                    (n - 1) * s
                    for n, s in zip(access.shape, access.strides, strict=True)
                    if s % row
                )
                _, high = access.offset.bounds(trips)
                most = max(most, min(row, high % row + inner + access.width))
    return most
