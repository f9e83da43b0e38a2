"""The joint fit of the free constants over all points, and what it says of points left out.

Robust least squares in log space. Each free constant has a prior with a spread by its confidence:
what its source shows (`published` in costs.json), or, where every point that gives it is left out,
what another document says (`otherwise`); so a constant that no remaining point shows keeps its
document's value. Points of one microbenchmark family weigh as one row. The model is linear in the
logarithms of the constants around costs.json, which holds what the fit has found: one estimate of
every point for each constant.
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

from neuroncore.timeline import constants
from neuroncore.timeline.compilation.toolchain import toolchain_of
from neuroncore.timeline.profiles.refit import SPREAD, STEP, fitted_changes
from neuroncore.timeline.results.uncertainty import EIGHTY
from neuroncore.work import costs

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
    reaches: np.ndarray
    """ln of how far the 80 % interval of each point's program reaches."""

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
        reaches = np.log([each.high_ns / each.low_ns for each in found]) / 2
        return cls(points, measured - base, np.column_stack(columns) / np.log(1 + STEP), reaches)

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
            found[mine] = self.errors[mine] - self.effects[mine] @ self.solve(~mine)
        return found


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
    """The left-out errors of whole kernels by toolchain, and how many their intervals hold:
    `model_error` in costs.json is what the spread of the constants leaves of the errors.
    """
    whole = [i for i, point in enumerate(fit.points) if point.section not in MICRO]
    names = np.array([toolchain_of(fit.points[i].build()) for i in whole])
    sizes, reaches = np.abs(errors[whole]), fit.reaches[whole]
    for name in dict.fromkeys(names):
        mine = names == name
        size, reach = np.quantile(sizes[mine], 0.8), np.median(reaches[mine])
        held, now = int((sizes <= reaches)[mine].sum()), costs()["model_error"][name]
        rest = np.sqrt(max(0.0, (size**2 - reach**2) / EIGHTY**2 + now**2))
        yield (
            f"  {name}: 80 % of {mine.sum()} kernels within a factor of {np.exp(size):.3f}; their "
            f"intervals hold {held}, reach a factor of {np.exp(reach):.3f} in the median, "
            f"and would suit with model_error {rest:.3f}"
        )
