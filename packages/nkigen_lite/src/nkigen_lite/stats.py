"""What a program costs: executed instructions, traffic, memory at its fullest, predicted time."""

from __future__ import annotations

from dataclasses import dataclass

from neuroncore.engines import Space
from neuroncore.program import Access, Call, Loop, Program, Statement, peaks
from neuroncore.targets import resolve_target
from neuroncore.timeline import estimate


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of one execution on one core.

    `instructions` are executed ones, DMAs included; `hbm_bytes` what DMAs read and write at the HBM
    side, replicas counted; `predicted_us` the timeline's mode "compiled", without the launch.
    """

    instructions: int
    dmas: int
    hbm_bytes: int
    peak_sbuf_bytes_per_partition: int
    psum_banks: int
    predicted_us: float


def measure(program: Program) -> Stats:
    """The stats of a program that `check` has passed."""
    instructions, dmas, hbm_bytes = _counts(program.body, program)
    found = peaks(program, resolve_target(program.target))
    timeline = estimate(program, mode="compiled", verified=True)
    held = {space: peak.held for space, peak in found.items()}
    return Stats(
        instructions, dmas, hbm_bytes, held.get(Space.sbuf, 0), held.get(Space.psum, 0),
        timeline.total_ns / 1e3,
    )  # fmt: skip


def _counts(body: tuple[Statement, ...], program: Program) -> tuple[int, int, int]:
    """(instructions, DMAs, HBM bytes) of a block."""
    buffers = program.buffers()
    totals = [0, 0, 0]
    for statement in body:
        if isinstance(statement, Loop):
            inner = _counts(statement.body, program)
            totals = [t + statement.trips * n for t, n in zip(totals, inner, strict=True)]
        elif isinstance(statement, Call):
            dma = statement.is_dma
            moved = sum(
                a.size * (a.dtype or buffers[a.buffer].dtype).itemsize
                for a in statement.operands.values()
                if isinstance(a, Access) and not buffers[a.buffer].space.on_chip
            )
            totals = [totals[0] + 1, totals[1] + dma, totals[2] + (moved if dma else 0)]
    return totals[0], totals[1], totals[2]
