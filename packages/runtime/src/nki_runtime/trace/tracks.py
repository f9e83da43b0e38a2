"""Tracks of a timeline: one per engine and per DMA queue, in the order in which they are drawn."""

from __future__ import annotations

from collections.abc import Sequence

from neuroncore.timeline import Bar

ENGINES = ("tensor", "vector", "scalar", "gpsimd", "sync")


def by_track(bars: Sequence[Bar]) -> dict[tuple[str, int], list[Bar]]:
    """Name and rank of each track → its bars."""
    found: dict[tuple[str, int], list[Bar]] = {}
    for bar in bars:
        found.setdefault(track_of(bar), []).append(bar)
    return dict(sorted(found.items(), key=lambda item: item[0][1]))


def track_of(bar: Bar) -> tuple[str, int]:
    """Name and rank of the track that a bar is drawn on."""
    if bar.queue is not None:
        return f"DMA queue {bar.queue}", 100 + bar.queue
    rank = 10 + 2 * ENGINES.index(bar.lane)
    if bar.kind == "load_stationary":
        return f"{bar.lane}: load stationary", rank + 1
    return bar.lane, rank


def rows_of(bars: Sequence[Bar]) -> list[list[Bar]]:
    """The bars on as few rows as have none that overlap."""
    rows: list[list[Bar]] = []
    ends: list[float] = []
    for bar in sorted(bars, key=lambda bar: bar.start_ns):
        free = next((n for n, end in enumerate(ends) if end <= bar.start_ns), len(rows))
        if free == len(rows):
            rows.append([])
            ends.append(0.0)
        rows[free].append(bar)
        ends[free] = bar.start_ns + bar.busy_ns
    return rows
