"""Points predicted without what was read off their family, or off all of their publication.

A constant that several experiments show becomes the mean of what the others show. One that the
left-out points alone gave goes back to what other documents say of it (`otherwise` in costs.json).
Where they say nothing it is looked for on the other points, from 0 on: one constant after the
other, a coarse grid and a finer one, mean absolute log error. Nothing is random; what the others do
not feel stays 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from benchmarks.model.points import Point
from benchmarks.model.predict import Model, Prediction

from neuroncore.timeline import Constants, constants
from neuroncore.work import costs

Given = tuple[str, str]
"""Name of a constant and the generation it is for, or "all"."""

GRID = (0.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
"""Where a constant of which nothing is known is looked for, in its unit."""
FINER = (0.5, 0.71, 1.0, 1.41, 2.0)
"""Around the best of these."""
FELT = 1e-6
"""A value is better than a smaller one only if the mean error lessens by more."""


@dataclass(slots=True)
class Fitter:
    """Predictions are remembered by the constants of their generation: fits share them."""

    known: dict[tuple[str, tuple[tuple[str, float], ...]], float] = field(default_factory=dict)
    models: dict[tuple[tuple[str, float], ...], Model] = field(default_factory=dict)

    def fit(self, points: Sequence[Point], start: Constants, free: Sequence[Given]) -> Constants:
        """`start` with its `free` constants, 0 at first, as they suit `points` best."""
        best = start
        for given in free:
            best = best.but(*given, 0.0)
        for given in free:
            best = self._best(best, given, GRID, points)
        for given in free:
            about = value_of(best, given)
            best = self._best(best, given, [about * factor for factor in FINER], points)
        return best

    def _best(
        self, now: Constants, given: Given, values: Sequence[float], points: Sequence[Point]
    ) -> Constants:
        best, least = now, self.loss(now, points)
        for value in values:
            other = now.but(*given, value)
            loss = self.loss(other, points)
            if loss < least - FELT:
                best, least = other, loss
        return best

    def loss(self, values: Constants, points: Sequence[Point]) -> float:
        """Mean absolute log error."""
        return fmean(self._error(point, values) for point in points)

    def _error(self, point: Point, values: Constants) -> float:
        at = tuple(sorted(values.at(point.device).items()))
        if (point.id, at) not in self.known:
            self.known[point.id, at] = self._model(values, at).predict(point).log_error
        return self.known[point.id, at]

    def _model(self, values: Constants, at: tuple[tuple[str, float], ...]) -> Model:
        """A model of these constants; LAUNCH is added to a timeline, not played."""
        played = tuple(pair for pair in at if pair[0] != "LAUNCH")
        shared = self.models.setdefault(played, Model(values)).timelines
        return Model(values, timelines=shared)


def value_of(values: Constants, given: Given) -> float:
    """The constant's value for its generation."""
    name, target = given
    return values.values[name][target]


def given_by(points: Sequence[Point]) -> set[Given]:
    """The constants that were read off these points, for their generation where it matters."""
    values = constants().values
    return {
        (name, p.device if p.device in values[name] else "all")
        for p in points
        for name in (*p.gives, *p.readings)
    }


def without(left_out: Sequence[Point], others: Sequence[Point], fitter: Fitter) -> Constants:
    """The constants that `others` alone give."""
    now, unknown = constants(), []
    kept = given_by(others)
    for given in sorted(given_by(left_out)):
        said = _read(given, others)
        if said is None and given in kept:
            continue
        said = _otherwise(*given) if said is None else said
        if said is None:
            unknown.append(given)
        else:
            now = now.but(*given, said)
    return fitter.fit([p for p in others if not p.reference], now, unknown) if unknown else now


def _read(given: Given, points: Sequence[Point]) -> float | None:
    """The mean of what the experiments of these points show; None where none shows it apart."""
    name, target = given
    shown = {
        p.family: p.readings[name]
        for p in points
        if name in p.readings and target in ("all", p.device)
    }
    return fmean(shown.values()) if shown else None


def _otherwise(name: str, target: str) -> float | None:
    said = costs()["constants"][name].get("otherwise")
    return said[target] if isinstance(said, Mapping) else said


def left_out_by(group: Callable[[Point], str], points: Sequence[Point]) -> list[Prediction]:
    """Each group of points predicted by constants that were not read off it."""
    fitter, found = Fitter(), []
    for name in dict.fromkeys(map(group, points)):
        mine = [p for p in points if group(p) == name]
        others = [p for p in points if group(p) != name]
        model = Model(without(mine, others, fitter))
        found += [model.predict(p) for p in mine]
    return found
