"""Predicted against measured, for every source line and engine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import exp, prod
from typing import NamedTuple

import numpy as np

from neuroncore.errors import LaunchError
from neuroncore.timeline.model.lanes import DMA
from neuroncore.timeline.profiles.rows import Profile
from neuroncore.timeline.results.timeline import Bar, Timeline

OWN_LANE = ("load_stationary", "table_load")
MATCHED = 0.5
"""The share of the measured time at source lines that must be at lines of the kernel."""
KEPT = 2 / 3
"""The share of a line's instructions that must be in the profile to compare their times."""
FAR = 4.0
"""A median of predictions that are off by more is of another kernel, or in another unit."""
OTHER_UNIT = 200.0
"""From here on the unit is the likeliest reason."""
OTHER_BYTES = 0.1
"""A line's transfers that move so much more or less to and from HBM are of another shape."""
QUANTILES = np.linspace(0.1, 0.9, 9)


class Where(NamedTuple):
    """A source line and one of the engines that work for it."""

    file: str
    line: int
    engine: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class LineTime:
    """The time of a line's instructions on one engine: their number, and the sum of their times."""

    where: Where
    predicted: int
    measured: int
    predicted_ns: float
    measured_ns: float
    error: float
    """ln(measured / predicted) of one instruction, the median of deciles."""
    predicted_bytes: float
    """To and from HBM, the mean of its instructions."""
    measured_bytes: float | None
    """The same; None where the profile does not say."""

    @property
    def is_comparable(self) -> bool:
        """Whether the instructions are the same ones but for a few that were dropped."""
        return bool(self.predicted) and KEPT <= self.measured / self.predicted <= 1

    @property
    def is_of_another_shape(self) -> bool:
        """Whether its transfers move other numbers of bytes."""
        if not (self.measured and self.measured_bytes and self.predicted_bytes):
            return False
        return abs(self.measured_bytes / self.predicted_bytes - 1) > OTHER_BYTES


@dataclass(frozen=True, slots=True)
class Comparison:
    """A timeline beside a profile of the same kernel."""

    profile: Profile
    timeline: Timeline
    lines: list[LineTime]

    @property
    def matched(self) -> float:
        """The share of the measured time (of rows with a source line) at lines of the kernel."""
        total = sum(line.measured_ns for line in self.lines)
        found = sum(line.measured_ns for line in self.lines if line.predicted)
        return found / total if total else 0.0

    @property
    def comparable(self) -> list[LineTime]:
        """The lines whose instructions are the same ones."""
        return [line for line in self.lines if line.is_comparable]

    @property
    def comparable_share(self) -> float:
        """The share of the measured time (of rows with a source line) at comparable lines."""
        total = sum(line.measured_ns for line in self.lines)
        return sum(line.measured_ns for line in self.comparable) / total if total else 0.0

    def __str__(self) -> str:
        return "\n".join(_text(self))


def compare(profile: Profile, timeline: Timeline) -> Comparison:
    """Match the rows of a profile to the micro-ops of a timeline by source line and engine.

    Raises LaunchError where the profile is of another kernel.
    """
    found = matched(profile, timeline)
    sizes = [abs(line.error) for line in found.comparable]
    if found.matched < MATCHED or not sizes or np.median(sizes) > np.log(FAR):
        raise LaunchError(
            f"{profile.name} is not a profile of {timeline.program.name}: {found.matched:.0%} of "
            f"its time is at lines of the kernel, {len(sizes)} lines have the same instructions"
            + (f", a factor of {exp(np.median(sizes)):.1f} off" if sizes else ""),
            hint=(
                "times of a profile are in ns: are these in another unit?"
                if sizes and np.median(sizes) > np.log(OTHER_UNIT)
                else "profile this file, with these shapes and for this target"
            ),
        )
    for line in found.lines:
        if line.is_of_another_shape:
            raise LaunchError(
                f"{profile.name} is of other shapes than {timeline.program.name}: transfers of "
                f"{line.where} move {line.measured_bytes:.0f} bytes to or from HBM each, "
                f"{line.predicted_bytes:.0f} in the kernel",
                hint="run the kernel with the shapes that were profiled",
            )
    return found


def matched(profile: Profile, timeline: Timeline) -> Comparison:
    """As `compare`, also of a profile of another kernel."""
    predicted = _predicted(timeline)
    measured = _measured(profile, predicted)
    lines = [
        _line_time(where, predicted.get(where, []), measured.get(where, []))
        for where in sorted({*predicted, *measured})
    ]
    return Comparison(profile, timeline, lines)


class _Each(NamedTuple):
    """An instruction of a line: its time, and its bytes to and from HBM."""

    length_ns: float
    hbm_bytes: float | None


def _line_time(where: Where, predicted: Sequence[_Each], measured: Sequence[_Each]) -> LineTime:
    error, times = 0.0, [[each.length_ns for each in side] for side in (measured, predicted)]
    if predicted and measured:
        deciles = [np.maximum(np.quantile(side, QUANTILES), 1.0) for side in times]
        error = float(np.median(np.log(deciles[0] / deciles[1])))
    return LineTime(
        where, len(predicted), len(measured), sum(times[1]), sum(times[0]), error,
        _mean_bytes(predicted) or 0.0, _mean_bytes(measured),
    )  # fmt: skip


def _mean_bytes(side: Sequence[_Each]) -> float | None:
    known = [each.hbm_bytes for each in side if each.hbm_bytes is not None]
    return sum(known) / len(known) if known else None


def _predicted(timeline: Timeline) -> dict[Where, list[_Each]]:
    """Of every line and engine the instructions, periods that were carried forward repeated."""
    found = defaultdict(list)
    for bar in timeline.bars:
        if bar.place is not None:
            where = Where(_name(bar.place.file), bar.place.line, _lane(bar))
            each = _Each(profiled_end_ns(bar, timeline) - bar.start_ns, bar.hbm_bytes)
            found[where] += [each] * _times(bar, timeline)
    return found


def _times(bar: Bar, timeline: Timeline) -> int:
    """How often a micro-op that was played once is executed."""
    return prod(1 + n * (first <= bar.number < behind) for first, behind, n, _ in timeline.repeats)


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def _lane(bar: Bar) -> str:
    return bar.kind if bar.kind in OWN_LANE else bar.lane


def profiled_end_ns(bar: Bar, timeline: Timeline) -> float:
    """As a profiler draws it: when its result is there, of a DMA its last byte."""
    return bar.end_ns - (timeline.values["DMA_COMPLETION"] if bar.lane == DMA else 0.0)


def _measured(profile: Profile, places: Collection[Where]) -> dict[Where, list[_Each]]:
    """Of every line and engine, its rows; of several lines, the first of the kernel.

    What SyncE does is not in a timeline: the transfers that it triggers are.
    """
    lines = {where[:2] for where in places}
    found = defaultdict(list)
    for row in profile.rows:
        if row.places and row.engine != "sync":
            file, line = next((p for p in row.places if p in lines), row.places[0])
            each = _Each(row.end_ns - row.start_ns, row.hbm_bytes)
            found[Where(file, line, row.engine)].append(each)
    return found


def _text(found: Comparison) -> Iterator[str]:
    total, span = found.timeline.total_ns, found.profile.span_ns
    yield (
        f"{found.timeline.program.name} on {found.timeline.target}, {found.profile.name}: "
        f"{_us(span)} measured, {_us(total)} predicted ({total / span - 1:+.1%}); "
        f"{found.matched:.0%} of the measured time is at lines of the kernel"
    )
    head = "line", "engine", "instructions", "predicted", "measured"
    yield f"{head[0]:28}{head[1]:16}{head[2]:>14}{head[3]:>14}{head[4]:>14}{'error':>9}"
    for line in found.lines:
        counts = f"{line.measured} of {line.predicted}"
        error = f"{exp(-line.error) - 1:+.1%}" if line.is_comparable else ""
        yield (
            f"{line.where!s:28}{line.where.engine:16}{counts:>14}{_us(line.predicted_ns):>14}"
            f"{_us(line.measured_ns):>14}{error:>9}"
        ).rstrip()
    yield from found.profile.notes


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e3:.2f} µs"
