"""Profiles as a device would give them, made of timelines."""

from __future__ import annotations

from typing import Any

import numpy as np

from neuroncore.timeline import Timeline

OPCODES = {"load_stationary": "LDWEIGHTS", "table_load": "ACT_TABLE_LOAD"}


def captured(
    timeline: Timeline, *, noise: float = 0.0, drop: float = 0.0, seed: int = 0
) -> dict[str, list[Any]]:
    """The Instruction table of a device that runs as `timeline`, with every micro-op played.

    noise: standard deviation of the logarithm of a time; drop: share of the rows that are missing.
    """
    random = np.random.default_rng(seed)
    table: dict[str, list[Any]] = {}
    for bar in timeline.bars:
        place = bar.place
        if random.random() < drop or place is None:
            continue
        is_dma, begin = bar.lane == "dma", 10_000_000 + round(bar.start_ns)
        length = bar.end_ns - bar.start_ns
        length -= timeline.values["DMA_COMPLETION"] * is_dma
        end = begin + round(length * np.exp(noise * random.standard_normal()))
        row = {
            "start_ts": begin,
            "end_ts": begin + 50 if is_dma else end,
            "engine": "Sync" if is_dma else bar.lane.capitalize(),
            "opcode": OPCODES.get(bar.kind, bar.instruction.upper()),
            "nki_source_location": f"['/home/user/{place.file}:{place.line}']",
            "dma_trigger_end_ts": end if is_dma else None,
            "hbm_read_bytes": bar.hbm_bytes if is_dma else None,
        }
        for name, value in row.items():
            table.setdefault(name, []).append(value)
    return table
