"""Constants that suit measurements and their documents best: robust least squares of logs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np

from neuroncore.errors import LaunchError
from neuroncore.timeline.model.constants import Constants
from neuroncore.timeline.profiles.comparison import (
    MATCHED,
    Comparison,
    LineTime,
    compare,
    matched,
)
from neuroncore.timeline.profiles.rows import Profile
from neuroncore.timeline.results.timeline import Timeline
from neuroncore.work import costs

SPREAD = {"documented": 0.1, "inferred": 0.3, "measured": 0.3, "assumed": 1.0}
"""Standard deviation of the logarithm of a constant by its confidence, before a fit."""

STEP = 0.1
"""The relative change of a constant by which its effect is measured."""
HUBER = 0.1
"""Residuals beyond count less."""
ROUNDS = 20

Play = Callable[[Constants], Timeline]
"""The program of the profile, estimated with these constants."""

Errors = Callable[[Constants], Mapping[Hashable, float]]

PASSES = 2
"""The model is not linear in its constants: how often it is linearised."""
WEIGHT = 10.0
"""A line is the median of many times of one device: closer than a published number."""
FELT = 0.02
"""A constant that moves no line by this share of its own change keeps its value."""
MOVED = 0.005
"""So does one that would change by a smaller share."""
REMAINING = 0.2
"""Lines that are further off in the median, with fitted constants too, are not of this device."""


@dataclass(frozen=True, slots=True)
class Refit:
    """Constants that suit a profile, and the comparisons before and after."""

    constants: Constants
    changes: dict[str, tuple[float, float]]
    """Constant → its value before and after, of the constants that the profile shows."""
    before: Comparison
    after: Comparison
    implausible: list[str]
    """What is wrong with fitted values that were not taken."""

    @property
    def is_better(self) -> bool:
        """Whether the predictions of the lines are closer with the new constants."""
        return _size(self.after) < _size(self.before)

    def __str__(self) -> str:
        return "\n".join(_text(self))


def refit(profile: Profile, play: Play, base: Constants) -> Refit:
    """Fit constants to the times of the profile's lines; the present values are the priors.

    A row is a line's instructions on one engine, one instruction each. Raises as `compare`, and
    LaunchError where most of the profile's time is at lines with other numbers of instructions, or
    where no constants bring the lines near.
    """
    before = compare(profile, play(base))
    _reject_other_counts(before)
    target, rows = before.timeline.target, {line.where for line in before.comparable}

    def errors(values: Constants) -> dict[Hashable, float]:
        lines = matched(profile, play(values)).lines
        return {line.where: line.error for line in lines if line.where in rows}

    now, implausible = _plausible(fit_constants(errors, base, target), base, target)
    first, last = base.at(target), now.at(target)
    changes = {name: (first[name], last[name]) for name in last if first[name] != last[name]}
    found = Refit(now, changes, before, matched(profile, play(now)), implausible)
    if _size(found.after) > np.log1p(REMAINING):
        raise LaunchError(
            f"no constants suit {profile.name}: {_sizes_text(found)}",
            expected=f"lines that are off by at most {REMAINING:.0%} in the median",
            got=", ".join(f"{name} {a:.4g} to {b:.4g}" for name, (a, b) in changes.items()) or None,
            hint="capture the profile again, or compare without a fit",
        )
    return found


def _reject_other_counts(found: Comparison) -> None:
    if found.comparable_share >= MATCHED:
        return
    other = max((line for line in found.lines if not line.is_comparable), key=_measured_ns)
    raise LaunchError(
        f"{found.profile.name} does not suit a fit of constants: {found.comparable_share:.0%} of "
        f"its time is at lines with as many instructions as the kernel; {other.where} has "
        f"{other.measured}, the kernel {other.predicted}",
        hint="run the kernel with the shapes that were profiled",
    )


def _measured_ns(line: LineTime) -> float:
    return line.measured_ns


def _plausible(found: Constants, base: Constants, target: str) -> tuple[Constants, list[str]]:
    """The constants without values outside of the plausible range, and what is wrong with these."""
    wrong = {name: what for (name, where), what in found.implausible().items() if where == target}
    for name in wrong:
        found = found.but(name, target, base.at(target)[name])
    return found, list(wrong.values())


def fit_constants(errors: Errors, base: Constants, target: str) -> Constants:
    """The constants of a target for which the errors are small; the present values are the priors.

    errors: ln(measured / predicted) of the same rows for any constants.
    """
    now, change = base, np.zeros(len(base.values))
    for _ in range(PASSES):
        change = _changes(errors, now, target, change)
        now = _changed(base, target, change)
    return now


def _changes(errors: Errors, now: Constants, target: str, sofar: np.ndarray) -> np.ndarray:
    """Logarithmic changes from the first values, linearised around `now`."""
    rows, values = errors(now), now.at(target)
    effects = np.zeros((len(rows), len(values)))
    for at, (name, value) in enumerate(values.items()):
        after = errors(now.but(name, target, value * (1 + STEP)))
        felt = [(rows[row] - after[row]) / np.log(1 + STEP) for row in rows]
        effects[:, at] = felt if np.abs(felt).max() >= FELT else 0.0
    spread = np.array([SPREAD[costs()["constants"][name]["confidence"]] for name in values])
    weights = np.full(len(rows), WEIGHT)
    return sofar + fitted_changes(np.array(list(rows.values())), effects, weights, -sofar, spread)


def _changed(base: Constants, target: str, change: np.ndarray) -> Constants:
    for by, (name, value) in zip(change, base.at(target).items(), strict=True):
        if abs(by) >= MOVED:
            base = base.but(name, target, float(f"{value * np.exp(by):.6g}"))
    return base


def _size(found: Comparison) -> float:
    return median(abs(line.error) for line in found.comparable)


def _sizes_text(found: Refit) -> str:
    return (
        f"lines are off by {np.expm1(_size(found.before)):.1%} in the median, "
        f"with fitted constants by {np.expm1(_size(found.after)):.1%}"
    )


def _text(found: Refit) -> Iterator[str]:
    yield _sizes_text(found)
    for name, (before, after) in found.changes.items():
        yield f"{name:24}{before:>12.6g}{after:>12.6g}"
    for what in found.implausible:
        yield f"not taken: {what}"


def fitted_changes(
    errors: np.ndarray,
    effects: np.ndarray,
    weights: np.ndarray,
    centre: np.ndarray,
    spread: np.ndarray,
) -> np.ndarray:
    """Logarithmic changes of the constants.

    errors: ln(measured / predicted) of each row; effects: d ln(predicted) / d ln(constant), rows x
    constants; centre and spread: the prior of each change.
    """
    change = np.zeros(effects.shape[1])
    for _ in range(ROUNDS):
        residual = np.maximum(np.abs(errors - effects @ change), 1e-9)
        each = weights * np.minimum(1, HUBER / residual) / HUBER**2
        normal = effects.T @ (effects * each[:, None]) + np.diag(1 / spread**2)
        change = np.linalg.solve(normal, effects.T @ (each * errors) + centre / spread**2)
    return change
