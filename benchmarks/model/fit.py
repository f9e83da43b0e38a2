"""Free constants fitted on points, and families of points predicted by what the others say.

The loss is the mean absolute log error of the points and a weak pull to what documents suggest.
Coordinate descent: every constant in turn, a coarse grid and then a golden section around its best;
nothing is random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log, sqrt
from statistics import fmean

from benchmarks.model.points import Point
from benchmarks.model.predict import Model, Prediction

from neuroncore.timeline import Constants, constants
from neuroncore.work import costs

Free = tuple[str, str]
"""Name of a constant and the generation it is for, or "all"."""

PULL = 0.02
"""Weight of the mean distance from the priors (log) beside the mean error."""
SPREAD = log(2)
"""How far from its value a constant is looked for, as a log ratio."""
GRID = 5
SECTIONS = 5
SWEEPS = 2

_GOLDEN = (sqrt(5) - 1) / 2


@dataclass(slots=True)
class Fitter:
    """Predictions are remembered by the constants of their generation: fits share them."""

    known: dict[tuple[str, tuple[tuple[str, float], ...]], float] = field(default_factory=dict)
    models: dict[tuple[tuple[str, float], ...], Model] = field(default_factory=dict)

    def fit(self, points: Sequence[Point], start: Constants | None = None) -> Constants:
        """`start` (None: those of costs.json) with its free constants fitted on `points`.

        A constant of a generation without points keeps its prior.
        """
        best = start = start or constants()
        devices = {p.device for p in points}
        for free in start.free:
            best = best.but(*free, prior(*free, start))
        mine = [free for free in start.free if free[1] == "all" or free[1] in devices]
        for sweep in range(SWEEPS):
            for free in mine:
                best = self._best(best, free, points, SPREAD / 2**sweep)
        return best

    def _best(
        self, now: Constants, free: Free, points: Sequence[Point], spread: float
    ) -> Constants:
        center = log(value_of(now, free))

        def loss(at: float) -> float:
            return self.loss(now.but(*free, exp(at)), points)

        step = 2 * spread / (GRID - 1)
        low = min((center - spread + step * n for n in range(GRID)), key=loss)
        found = golden(loss, low - step, low + step)
        return now.but(*free, exp(min((center, low, found), key=loss)))

    def loss(self, values: Constants, points: Sequence[Point]) -> float:
        """Mean absolute log error and the pull to the priors."""
        error = fmean(self._error(point, values) for point in points)
        away = [abs(log(value_of(values, f) / prior(*f, values))) for f in values.free]
        return error + PULL * (fmean(away) if away else 0.0)

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


def golden(loss: Callable[[float], float], low: float, high: float) -> float:
    """Where `loss` is least between low and high, if it has one valley there."""
    a, b = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_a, at_b = loss(a), loss(b)
    for _ in range(SECTIONS):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - _GOLDEN * (high - low)
            at_a = loss(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + _GOLDEN * (high - low)
            at_b = loss(b)
    return a if at_a <= at_b else b


def value_of(values: Constants, free: Free) -> float:
    """The constant's value for its generation."""
    name, target = free
    return values.values[name][target]


def prior(name: str, target: str, values: Constants) -> float:
    """What documents suggest for a free constant; its value where they say nothing."""
    said = costs()["constants"][name].get("prior")
    if isinstance(said, Mapping):
        said = said.get(target)
    return values.values[name][target] if said is None else said


def leave_one_family_out(points: Sequence[Point]) -> list[Prediction]:
    """Each family predicted by constants fitted on the others."""
    fitter, found = Fitter(), []
    for family in dict.fromkeys(p.family for p in points):
        others = [p for p in points if p.family != family and not p.reference]
        model = Model(fitter.fit(others))
        found += [model.predict(p) for p in points if p.family == family]
    return found
