"""The joint fit of the free constants over all points, and what it says of points left out.

Robust least squares in log space. Each free constant has a prior with a spread by its confidence:
what its source shows (`published` in costs.json), or, where every point that gives it is left out,
what another document says (`otherwise`); so a constant that no remaining point shows keeps its
document's value. Points of one microbenchmark family weigh as one row. The model is linear in the
logarithms of the constants around costs.json, which contains what an earlier run found: one
estimate of every point for each constant. Points that were left out are estimated anew with what
the others have found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median, quantiles

import numpy as np
from benchmarks.model.points import Point, all_points
from benchmarks.model.predict import Model, Prediction, disorders, ladder_pairs
from benchmarks.model.spread import fitted_spreads, half_widths, left_out_half_widths

from neuroncore.timeline import constants
from neuroncore.timeline.profiles.refit import SPREAD, STEP, fitted_changes
from neuroncore.timeline.results.uncertainty import Uncertainty
from neuroncore.work import costs

GIVEN = ("explicit",)
"""Errors of the model that are not found here: kernels of the library, more than the three families
of explicit ones here, show a larger one."""
FREE = (
    ("LAUNCH", "trn1"),
    ("LAUNCH", "trn2"),
    ("RECIPROCAL", "all"),
    ("ACCESS_OVERHEAD", "all"),
    ("DMA_START", "trn2"),
    ("DMA_STORE_START", "trn1"),
    ("DMA_STORE_START", "trn2"),
    ("DMA_STAGGER", "all"),
    ("DMA_QUEUE_FLOOR", "all"),
    ("DMA_TO_CONSUMER", "all"),
    ("REORDER_HORIZON", "all"),
)
"""Name and generation (or all); everything else in costs.json is what a document says."""

MICRO = (1, 10)
"""Sections of single instructions and streams: a family there weighs as one row."""


@dataclass(frozen=True)
class Fit:
    """Points, their log errors with costs.json, and how each free constant moves them."""

    points: Sequence[Point]
    errors: np.ndarray
    """ln(measured / predicted)."""
    effects: np.ndarray
    """d ln(predicted) / d ln(constant): points x constants."""
    found: Sequence[Uncertainty] = ()
    """The uncertainty of each point's program."""

    @classmethod
    def of(cls, points: Sequence[Point]) -> Fit:
        """Estimates every point once, and once for each free constant."""
        points = [p for p in points if not p.reference]
        model = Model()
        base = _logs(model, points)
        columns = []
        for name, target in FREE:
            moved = constants().but(
                name, target, _at(constants().values[name], target) * (1 + STEP)
            )
            mine = [n for n, p in enumerate(points) if target in ("all", p.device)]
            columns.append(np.zeros(len(points)))
            columns[-1][mine] = _logs(Model(moved), [points[n] for n in mine]) - base[mine]
        measured = np.log([p.measured for p in points])
        found = [model.timeline(p).uncertainty for p in points]
        return cls(points, measured - base, np.column_stack(columns) / np.log(1 + STEP), found)

    @cached_property
    def weights(self) -> np.ndarray:
        """1 for a kernel; a share of 1 for a row of a microbenchmark family."""
        sizes = Counter(p.family for p in self.points)
        return np.array([1 / sizes[p.family] if p.section in MICRO else 1.0 for p in self.points])

    def solve(self, kept: np.ndarray) -> np.ndarray:
        """Logarithmic changes of the constants that suit the kept points and the priors best."""
        centre, spread = _priors([p for p, keep in zip(self.points, kept, strict=True) if keep])
        errors, effects, weights = self.errors[kept], self.effects[kept], self.weights[kept]
        return fitted_changes(errors, effects, weights, centre, spread)

    def left_out(self, group: Callable[[Point], str]) -> np.ndarray:
        """ln(measured / predicted) of every point by constants that its group had no part in."""
        names = np.array([group(p) for p in self.points])
        found = np.empty(len(names))
        for name in dict.fromkeys(names):
            mine = names == name
            found[mine] = self.errors_with(self.solve(~mine), mine)
        return found

    def errors_with(self, change: np.ndarray, mine: np.ndarray) -> np.ndarray:
        """ln(measured / predicted) of these points with changed constants, estimated anew."""
        points = [p for p, is_mine in zip(self.points, mine, strict=True) if is_mine]
        changed = constants()
        for (name, target), by in zip(FREE, change, strict=True):
            value = _at(changed.values[name], target) * np.exp(by)
            changed = changed.but(name, target, value)
        return np.log([p.measured for p in points]) - _logs(Model(changed), points)


def _at(values: float | Mapping[str, float], target: str) -> float:
    """The value of a generation; where it has none, the first."""
    if isinstance(values, Mapping):
        return values.get(target) or next(iter(values.values()))
    return values


def _logs(model: Model, points: Sequence[Point]) -> np.ndarray:
    return np.log([model.predict(p).predicted for p in points])


def _priors(kept: Sequence[Point]) -> tuple[np.ndarray, np.ndarray]:
    """Of each free constant: ln(document's value / value in costs.json), and its spread.

    The document is the one that the constant is from, where one of `kept` is of it.
    """
    shown = {name for point in kept for name in point.gives}
    given = {name for point in all_points() for name in point.gives}
    table, centres, spreads = costs()["constants"], [], []
    for name, target in FREE:
        row = table[name]
        said = (
            row["published"]
            if name in shown or name not in given
            else row.get("otherwise", row["published"])
        )
        centres.append(np.log(_at(said, target) / _at(row["value"], target)))
        spreads.append(SPREAD[row["confidence"]])
    return np.array(centres), np.array(spreads)


def fit_lines(points: Sequence[Point]) -> Iterator[str]:
    """What the fit finds, degrees of freedom, and errors of points that were left out."""
    fit = Fit.of(points)
    change = fit.solve(np.full(len(fit.points), True))
    heads = "document", "costs.json", "fitted", "felt by"
    yield f"{'constant':24}" + "".join(f"{head:>11}" for head in heads)
    for (name, target), by, effect in zip(FREE, change, fit.effects.T, strict=True):
        row, felt = costs()["constants"][name], int((np.abs(effect) > 0.05).sum())
        said, value = _at(row["published"], target), _at(row["value"], target)
        label = name if target == "all" else f"{name} {target}"
        yield f"{label:24}{said:11.4g}{value:11.4g}{value * np.exp(by):11.4g}{felt:11d}"
    families = len({p.family for p in fit.points})
    publications = len({p.publication for p in fit.points})
    yield (
        f"degrees of freedom: {len(FREE)} free constants; {len(fit.points)} points, "
        f"{fit.weights.sum():.0f} rows, {families} families, {publications} publications"
    )
    yield _line("costs.json", fit, fit.errors)
    yield _line("fitted", fit, fit.errors - fit.effects @ change)
    yield _line("leave one family out", fit, fit.left_out(lambda p: p.family))
    errors = fit.left_out(lambda p: p.publication)
    yield _line("leave one publication out", fit, errors)
    yield from _order_lines(fit, errors)
    yield from _spread_lines(fit, errors)


def _line(what: str, fit: Fit, errors: np.ndarray) -> str:
    sizes = by_row(fit, errors)
    ninth = quantiles(sizes, n=10, method="inclusive")[8]
    return f"{what}: median {median(sizes):.1%} p90 {ninth:.1%} ({len(sizes)} rows)"


def by_row(fit: Fit, errors: np.ndarray) -> list[float]:
    """Relative errors, of a microbenchmark family their median."""
    found: dict[str, list[float]] = {}
    for point, error in zip(fit.points, np.abs(np.exp(-errors) - 1), strict=True):
        found.setdefault(point.family if point.section in MICRO else point.id, []).append(error)
    return [median(each) for each in found.values()]


def _order_lines(fit: Fit, errors: np.ndarray) -> Iterator[str]:
    """How many pairs of a ladder that differ are in the measured order."""
    made = [Prediction(p, p.measured * np.exp(-e)) for p, e in zip(fit.points, errors, strict=True)]
    pairs, wrong = len([*ladder_pairs(made)]), len([*disorders(made)])
    yield f"  order in ladders: {pairs - wrong} of {pairs} pairs"


def _spread_lines(fit: Fit, errors: np.ndarray) -> Iterator[str]:
    """The errors of the model itself that suit the left-out errors of whole kernels, and how many
    of these are inside intervals: of costs.json, and of spreads that were left out with them.
    """
    whole = [i for i, point in enumerate(fit.points) if point.section not in MICRO]
    found, sizes = [fit.found[i] for i in whole], np.abs(errors[whole])
    known, now = np.array([each.known for each in found]), costs()["model_error"]
    shares = np.array([[each.shares.get(name, 0.0) for name in now] for each in found])
    given = np.array([now[name] if name in GIVEN else np.nan for name in now])
    for name, value in zip(now, fitted_spreads(sizes, known, shares, given), strict=True):
        yield f"  model_error, {name}: {now[name]:.2f} in costs.json, {value:.2f} fitted"
    groups = np.array([fit.points[i].publication for i in whole])
    for what, reaches in (
        ("as costs.json has them", half_widths(known, shares, np.array([*now.values()]))),
        ("left out like their kernels", left_out_half_widths(sizes, known, shares, groups, given)),
    ):
        yield (
            f"  80 % intervals, model errors {what}: {(sizes <= reaches).sum()} of {len(whole)} "
            f"left-out kernels inside, half-width {np.expm1(np.median(reaches)):.1%} in the median"
        )
