"""A played plan for trace viewers (ui.perfetto.dev, chrome://tracing): trace-event JSON.

One track per queue, an arrow per wait. The format is plain JSON, so it needs no library; the
binary format of perfetto's own writer would be smaller, and is not needed for single kernels.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from neuroncore.timeline import Bar
from tokenplan.graph.token_graph import TokenGraph
from tokenplan.kernel.model import Op
from tokenplan.neuroncore.counters import values_of
from tokenplan.neuroncore.nests import Nests
from tokenplan.neuroncore.play import Played

MOST_ARROWS = 50_000


def trace_json(graph: TokenGraph, played: Played) -> str:
    """The played plan as a document of the trace-event format; times are µs."""
    tracks = _Tracks()
    slices = list(_slices(graph, played, tracks))
    arrows = list(_arrows(graph, played, tracks))
    names = [
        {"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": name}}
        for name, tid in tracks.tid.items()
    ]
    head = {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": graph.kernel.name}}
    events = [head, *names, *slices, *arrows]
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events})


class _Tracks:
    """Queues as tracks; a queue whose transfers overlap has more than one."""

    def __init__(self) -> None:
        self.tid: dict[str, int] = {}
        self.free: dict[str, list[float]] = {}
        self.of: dict[tuple[str, int], tuple[int, float, float]] = {}
        """Operation and instance → track, start, end."""

    def place(self, queue: str, start: float, end: float) -> int:
        lanes = self.free.setdefault(queue, [])
        lane = next((n for n, free in enumerate(lanes) if free <= start), len(lanes))
        lanes[lane:] = [end, *lanes[lane + 1 :]]
        name = queue if not lane else f"{queue} ({lane + 1})"
        return self.tid.setdefault(name, len(self.tid) + 1)


def _slices(graph: TokenGraph, played: Played, tracks: _Tracks) -> Iterator[dict[str, Any]]:
    bars, nests = played.timeline.bars, Nests(graph.kernel, played.plan.queues)
    for op in nests.ops:
        queue, rows = played.plan.queues[op.id], nests.iterations(op).tolist()
        for nth, (first, last) in enumerate(played.bars[op.id]):
            shown = [b for b in bars[first : last + 1] if b.kind != "load_stationary"]
            start = round(shown[0].start_ns / 1e3, 6)
            end = round(_left(bars[last]) / 1e3, 6)
            tid = tracks.place(queue, start, end)
            tracks.of[op.id, nth] = tid, start, end
            yield {
                "ph": "X", "pid": 1, "tid": tid, "ts": start, "dur": end - start, "name": op.id,
                "args": _told(op, rows[nth]),
            }  # fmt: skip


def _left(bar: Bar) -> float:
    """When a transfer is complete, or an instruction leaves its engine (ns)."""
    return bar.end_ns if bar.kind == "transfer" else bar.start_ns + bar.busy_ns


def _told(op: Op, row: list[int]) -> dict[str, Any]:
    told: dict[str, Any] = dict(zip(op.loops, row, strict=True))
    if op.place:
        told["source"] = f"{op.place.file}:{op.place.line}"
    return told


def _arrows(graph: TokenGraph, played: Played, tracks: _Tracks) -> Iterator[dict[str, Any]]:
    """From who counts to who waits; a count that was waited for before has none."""
    plan, nests = played.plan, Nests(graph.kernel, played.plan.queues)
    names, on = list(nests.by_id), {queue: [] for queue in plan.queues.values()}
    nth = dict.fromkeys(names, 0)
    for which in nests.sequence():
        name = names[which]
        on[plan.queues[name]].append((name, nth[name]))
        nth[name] += 1
    number = 0
    for wait in plan.waits:
        values = values_of(nests, wait.op, wait.distance, wait.count)
        for at in np.flatnonzero(np.diff(values, prepend=0) > 0).tolist():
            if number == MOST_ARROWS:
                return
            number += 1
            tid, start, _ = tracks.of[on[wait.queue][values[at] - 1]]
            to, when, _ = tracks.of[wait.op, at]
            common = {"pid": 1, "id": number, "name": ", ".join(wait.why), "cat": "wait"}
            yield {"ph": "s", "tid": tid, "ts": start, **common}
            yield {"ph": "f", "bp": "e", "tid": to, "ts": when, **common}
