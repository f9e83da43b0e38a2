"""The error of the model itself: of each toolchain, and of a closed one's number of instructions.

The logarithm of an estimate has the variance of its constants, and for each of these errors the
square of its share of the time (`shares`) times a spread. The spreads are those with the least
interval score (Gneiting and Raftery 2007) over kernels whose publication had no part in the
constants: the width of an 80 % interval, and 2 / 0.2 times how far a measurement is outside. The
score is proper: an interval that is too wide costs, as one that is too narrow does. A few kernels
far outside widen all intervals by it, so that these hold more than 80 %: one factor for all spreads
then makes them hold 80 % of the kernels that they were found with. A spread that other kernels
show, more of them than were scored, is given and not found, and the factor leaves it alone.
"""

from __future__ import annotations

import numpy as np

from neuroncore.timeline.results.uncertainty import EIGHTY

OUTSIDE = 0.2
"""The share of measurements that 80 % intervals leave out."""
GRID = np.linspace(0, 2, 101)
"""The spreads that are tried: a step is less than any of them is known by."""
FACTORS = np.linspace(0, 2, 401)
"""Of all spreads, tried from the least on."""


def half_widths(known: np.ndarray, shares: np.ndarray, spreads: np.ndarray) -> np.ndarray:
    """ln of how far the intervals reach; known: the deviation by constants and domain."""
    return EIGHTY * np.sqrt(known**2 + ((shares * spreads) ** 2).sum(axis=1))


def fitted_spreads(
    errors: np.ndarray, known: np.ndarray, shares: np.ndarray, given: np.ndarray | None = None
) -> np.ndarray:
    """The spread of each error with the least score, times the least factor that holds 80 %.

    errors: ln(measured / predicted). given: spreads that are not found here; NaN where they are.
    """
    free = np.full(shares.shape[1], True) if given is None else np.isnan(given)
    spreads = np.full(shares.shape[1], GRID[-1]) if given is None else given.copy()
    spreads[free] = GRID[-1]
    spreads = _best_spreads(errors, known, shares, spreads, np.flatnonzero(free))
    for factor in FACTORS:
        scaled = np.where(free, spreads * factor, spreads)
        if (errors <= half_widths(known, shares, scaled)).mean() >= 1 - OUTSIDE:
            return scaled
    return spreads


def _best_spreads(
    errors: np.ndarray, known: np.ndarray, shares: np.ndarray, spreads: np.ndarray, free: np.ndarray
) -> np.ndarray:
    """Of the least score: one free spread after the other until none gains."""
    before = None
    while before is None or (spreads != before).any():
        before = spreads.copy()
        for at in free:
            tried = [np.where(np.arange(len(spreads)) == at, value, spreads) for value in GRID]
            spreads = min(tried, key=lambda each: _score(errors, half_widths(known, shares, each)))
    return spreads


def left_out_half_widths(
    errors: np.ndarray, known: np.ndarray, shares: np.ndarray, groups: np.ndarray,
    given: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """How far intervals reach by spreads that the kernels of their own group had no part in."""
    found = np.empty(len(errors))
    for name in np.unique(groups):
        mine = groups == name
        spreads = fitted_spreads(errors[~mine], known[~mine], shares[~mine], given)
        found[mine] = half_widths(known[mine], shares[mine], spreads)
    return found


def _score(errors: np.ndarray, reaches: np.ndarray) -> float:
    outside = np.maximum(0, np.abs(errors) - reaches)
    return float((2 * reaches + 2 / OUTSIDE * outside).mean())
