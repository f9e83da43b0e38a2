"""Sizes that all generations share, of `neuroncore.targets`."""

from __future__ import annotations

from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.targets import TARGETS
from nki_dtypes import float32


def _shared(name: str) -> int:
    """The one value of a field of all targets."""
    (size,) = {getattr(target, name) for target in TARGETS.values()}
    return size


PARTITIONS = _shared("partitions")
NUM_PSUM_BANKS = _shared("psum_banks")
BANK_BYTES = _shared("psum_bank_bytes")
"""Bytes of a PSUM bank in each partition."""
BANK_ELEMS = BANK_BYTES // float32.itemsize
"""Elements of a PSUM bank in each partition: results are float32."""


def sbuf_bytes(target: str) -> int:
    """Bytes of SBUF in each partition that a kernel may use."""
    return NeuronCore(target, watchers=()).free_bytes_of(MemorySpace.sbuf)
