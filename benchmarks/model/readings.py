"""What a published number is of a timeline.

Streams of equal instructions are read by their median, so that the first few do not count; what
the source shows once is read once. Times are nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median

from benchmarks.model.points import Point

from neuroncore.timeline import Bar, Timeline

Values = Mapping[str, float]
"""The constants of the generation, by name."""


def chosen(point: Point, timeline: Timeline) -> list[Bar]:
    """The bars that the point is about, in order of their starts; ValueError for none."""
    kinds = (point.kind,) if point.kind else ("pass", "transfer", "multiply_moving")
    bars = [b for b in timeline.bars if b.instruction == point.of and b.kind in kinds]
    if not bars:
        raise ValueError(f"{point.id}: no {' or '.join(kinds)} of {point.of} was played")
    return sorted(bars, key=lambda bar: bar.start_ns)


def _launch(point: Point, timeline: Timeline, values: Values) -> float:
    """First instruction to last completion, and the fixed start and end of a launch."""
    return timeline.total_ns + values["LAUNCH"]


def _first_length(point: Point, timeline: Timeline, values: Values) -> float:
    """Start (a DMA: trigger) to completion of the first one."""
    first = chosen(point, timeline)[0]
    return first.end_ns - first.start_ns


def _last_length(point: Point, timeline: Timeline, values: Values) -> float:
    """The same of the last one."""
    last = chosen(point, timeline)[-1]
    return last.end_ns - last.start_ns


def _total(point: Point, timeline: Timeline, values: Values) -> float:
    """First instruction to last completion."""
    return timeline.total_ns


def _round_trip(point: Point, timeline: Timeline, values: Values) -> float:
    """From the start of every second one to the next."""
    return 2 * _start_interval(point, timeline, values)


def _tflops(point: Point, timeline: Timeline, values: Values) -> float:
    """Floating-point operations over TensorE's busy time."""
    return timeline.flops / timeline.lanes["tensor"].busy_ns / 1e3


def _length(point: Point, timeline: Timeline, values: Values) -> float:
    """Start to completion, as a profiler draws it."""
    return median(bar.end_ns - bar.start_ns for bar in chosen(point, timeline))


def _transfer(point: Point, timeline: Timeline, values: Values) -> float:
    """How long the busiest DMA engine moves data in the first transfer."""
    return chosen(point, timeline)[0].busy_ns - values["DMA_START"]


def _span(point: Point, timeline: Timeline, values: Values) -> float:
    """From the first to the last byte of the first transfer, over all DMA engines."""
    first = chosen(point, timeline)[0]
    fixed = values["DMA_START"] + values["DMA_COMPLETION"]
    return first.end_ns - first.start_ns - fixed


def _gap(point: Point, timeline: Timeline, values: Values) -> float:
    """Completion of the first one to the start of the first `to`."""
    done = chosen(point, timeline)[0].end_ns
    first = ("pass", "table_load")
    consumers = (b for b in timeline.bars if b.instruction == point.to and b.kind in first)
    return min(b.start_ns for b in consumers) - done


def _start_interval(point: Point, timeline: Timeline, values: Values) -> float:
    """From one start to the next."""
    return _mean_interval([bar.start_ns for bar in chosen(point, timeline)])


def _rate(point: Point, timeline: Timeline, values: Values) -> float:
    """Bytes per ns of a stream of equal transfers."""
    bars = chosen(point, timeline)
    return timeline.hbm_bytes / len(bars) / _mean_interval([bar.end_ns for bar in bars])


def _mean_interval(times: Sequence[float]) -> float:
    return median(after - before for before, after in pairwise(times))


READINGS: Mapping[str, Callable[[Point, Timeline, Values], float]] = {
    "launch": _launch,
    "first_length": _first_length,
    "last_length": _last_length,
    "length": _length,
    "total": _total,
    "round_trip": _round_trip,
    "tflops": _tflops,
    "transfer": _transfer,
    "span": _span,
    "gap": _gap,
    "start_interval": _start_interval,
    "rate": _rate,
}

LARGE = frozenset({"launch", "tflops"})
"""Readings of the whole, which need not see every iteration of a loop."""


def figure(name: str, timeline: Timeline) -> float:
    """A percentage that profilers print: MFU, or the active time of a lane."""
    if name == "mfu":
        return 100 * timeline.mfu
    return 100 * timeline.lanes[name].busy_ns / timeline.total_ns
