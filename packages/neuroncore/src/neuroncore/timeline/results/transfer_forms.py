"""The form of a DMA: its direction, and in how many contiguous runs it moves a partition's row.

`measured_transfers` of costs.json says which forms publications show, with which runs.
"""

from __future__ import annotations

from typing import NamedTuple

from neuroncore.timeline.playing.sites import Site
from neuroncore.work import Transfer

LOAD, STORE, WITHIN_HBM, ON_CHIP = "load", "store", "copy within HBM", "copy on chip"


class TransferForm(NamedTuple):
    """What publications distinguish of transfers."""

    kind: str
    """Direction, with "indirect" or "in runs" where a row is more than one run of bytes."""
    run_bytes: int

    def __str__(self) -> str:
        return f"{self.kind} of {self.run_bytes} bytes" if "in runs" in self.kind else self.kind


def transfer_form(site: Site) -> TransferForm | None:
    """The form of a DMA; None for instructions of engines."""
    op = site.work[0]
    if not isinstance(op, Transfer):
        return None
    direction = _direction(site, op)
    if op.indirect:
        return TransferForm(f"indirect {direction}", op.run_bytes)
    is_copy = site.call.instruction == "dma_copy"  # a transposition moves rows of its source
    is_cut = is_copy and 0 < op.partitions < op.descriptors
    return TransferForm(direction + " in runs" * is_cut, op.run_bytes)


def _direction(site: Site, op: Transfer) -> str:
    ends_in_hbm = site.hbm_bytes // max(1, op.bytes)
    if ends_in_hbm == 1:
        return STORE if site.begins == "DMA_STORE_START" else LOAD
    return WITHIN_HBM if ends_in_hbm else ON_CHIP
