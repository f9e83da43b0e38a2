"""Sizes of memories for kernels that are generated."""

from __future__ import annotations

from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore


def sbuf_bytes(target: str) -> int:
    """Bytes of SBUF in each partition that a kernel may use."""
    return NeuronCore(target, watchers=()).free_bytes_of(MemorySpace.sbuf)
