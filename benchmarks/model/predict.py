"""Points predicted with given constants, and what follows: errors, orders, bottlenecks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median, quantiles
from typing import Any

from benchmarks.model.points import Point, all_points
from benchmarks.model.readings import LARGE, READINGS, figure

from neuroncore.timeline import Constants, Timeline, constants, estimate

DIFFERENT = 0.05
"""Versions of a ladder that differ by more in the measurement must be ordered alike."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A point and what the model says; in nanoseconds, or a fraction."""

    point: Point
    predicted: float

    @property
    def error(self) -> float:
        """Relative, positive where the model is too slow (or too high)."""
        return self.predicted / self.point.measured - 1


@dataclass(slots=True)
class Model:
    """The timeline with fixed constants; every program is estimated once.

    `mode` is for times of whole programs; single instructions and streams of them are as written.
    """

    constants: Constants = field(default_factory=constants)
    mode: str = "device"
    timelines: dict[Any, Timeline] = field(default_factory=dict)

    def timeline(self, point: Point) -> Timeline:
        """The timeline of the point's program.

        Programs are verified by the tests: one of them fills SBUF beyond the verifier's reserve.
        """
        skip = point.read in LARGE
        mode = self.mode if skip else "as_written"
        key = (point.key, mode, skip, point.flags)
        if key not in self.timelines:
            self.timelines[key] = estimate(
                point.build(),
                mode=mode,
                constants=self.constants,
                skip_periods=skip,
                verified=True,
                without=point.flags,
            )
        return self.timelines[key]

    def predict(self, point: Point) -> Prediction:
        """The point's number; a rate is a fraction of its family's reference."""
        value = self._read(point)
        if point.unit == "1":
            value /= self._read(_reference(point))
        return Prediction(point, value)

    def _read(self, point: Point) -> float:
        values = self.constants.at(point.device)
        return READINGS[point.read](point, self.timeline(point), values)

    def figures(self, point: Point) -> dict[str, float]:
        """What the timeline says for each percentage that the source prints."""
        return {name: figure(name, self.timeline(point)) for name in point.figures}

    def bottleneck(self, point: Point) -> str:
        return self.timeline(point).bottleneck


def _reference(point: Point) -> Point:
    return next(p for p in all_points() if p.family == point.family and p.reference)


def summary(predictions: Iterable[Prediction]) -> tuple[float, float, int]:
    """Median and 90th percentile (linear between ranks) of the absolute errors, and how many.

    References do not count: they are right by definition.
    """
    errors = [abs(p.error) for p in predictions if not p.point.reference]
    if len(errors) < 2:
        return (errors[0], errors[0], 1) if errors else (0.0, 0.0, 0)
    return median(errors), quantiles(errors, n=10, method="inclusive")[8], len(errors)


def disorders(predictions: Sequence[Prediction]) -> Iterator[tuple[Prediction, Prediction]]:
    """Pairs of one ladder that the model orders otherwise than the measurement does."""
    for a, b in ladder_pairs(predictions):
        if (a.predicted < b.predicted) != (a.point.measured < b.point.measured):
            yield a, b


def ladder_pairs(predictions: Sequence[Prediction]) -> Iterator[tuple[Prediction, Prediction]]:
    """Pairs of one ladder whose measurements differ by more than DIFFERENT."""
    for a, b in combinations(predictions, 2):
        low, high = sorted((a.point.measured, b.point.measured))
        if a.point.ladder and a.point.ladder == b.point.ladder and high > low * (1 + DIFFERENT):
            yield a, b
