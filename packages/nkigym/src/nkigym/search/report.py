"""A search in numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import ceil, log10
from typing import Any

GATES = ("step", "legality", "capacity", "bound")
"""The gates that can reject a candidate, in this order; the timeline estimates the others."""


MAX_REASONS = 5
"""Lines of rejections that a person sees; JSON has all of them."""

Curve = tuple[tuple[int, float, float], ...]
"""Where the best so far became better: candidates tried, seconds, its latency (ns)."""
CANDIDATES, SECONDS = 0, 1
FEWEST, SOONEST = 1, -1
"""Exponents of ten of the first moment: 10 candidates, 0.1 s."""


@dataclass(frozen=True, slots=True)
class Report:
    """The figures of the public original's report, and the funnel.

    `unique` programs were reached by `visited` transitions (the root counted), of which
    `duplicates` led to a program that was known; `qualifying` are deep enough. `candidates` are the
    steps that were tried, also the rejected ones; with it as a budget the same search finds
    the same. `funnel` counts what each gate rejected, by reason. `cached` latencies came from a
    store. `depths` are how many unique programs are 0, 1, … steps from the root.
    """

    space: str
    strategy: str
    seed: int
    root_statements: int
    root_opportunities: int
    unique: int
    visited: int
    duplicates: int
    qualifying: int
    candidates: int
    estimated: int
    cached: int
    depths: tuple[int, ...]
    funnel: Mapping[str, Mapping[str, int]]
    stopped: str
    """"exhausted", "candidates", "time", "targets", "converged" or "interrupted"."""
    root_ns: float
    best_ns: float
    seconds: float
    curve: Curve = ()
    compared: Mapping[str, Curve] = field(default_factory=dict)
    """The curves of other strategies with the same budget and seed."""

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For a person."""
        rejected = self._rejected()
        return [
            f"{self.space}: {self.root_statements:,} statements, {self.root_opportunities:,} "
            f"opportunities at the root",
            f"{self.candidates:,} candidates ({self.strategy}, seed {self.seed}; stopped: "
            f"{self.stopped}), {self.unique:,} unique, {self.visited:,} visited, "
            f"{self.duplicates:,} duplicates, {self.qualifying:,} qualifying",
            f"by depth: {' '.join(map(str, self.depths))}",
            f"{self.estimated:,} estimated, {self.cached:,} of them cached"
            + (f", rejected {self._gates()}:" if rejected else ""),
            *rejected,
            *curve_lines(
                {self.strategy: self.curve, **self.compared}, self.candidates, self.seconds
            ),
        ]

    def _gates(self) -> str:
        return ", ".join(f"{sum(n.values()):,} at {gate}" for gate, n in self.funnel.items())

    def _rejected(self) -> list[str]:
        """The most frequent reasons of rejections, and the number of the others."""
        counted = [
            (number, f"at {gate}: {reason}")
            for gate, reasons in self.funnel.items()
            for reason, number in reasons.items()
        ]
        counted.sort(key=lambda each: -each[0])
        if len(counted) > MAX_REASONS:
            others = counted[MAX_REASONS - 1 :]
            number = sum(number for number, _ in others)
            counted[MAX_REASONS - 1 :] = [(number, f"for {len(others)} other reasons")]
        return [f"  {number:>9,} {what}" for number, what in counted]


# -- curves, side by side --------------------------------------------------------------------------


def best_by(curve: Curve, axis: int, limit: float) -> float | None:
    """The best latency (ns) up to a limit of candidates or seconds.

    >>> curve = ((0, 0.0, 90.0), (7, 0.2, 60.0), (40, 1.5, 50.0))
    >>> best_by(curve, CANDIDATES, 10), best_by(curve, SECONDS, 2.0)
    (60.0, 50.0)
    """
    return min((moment[2] for moment in curve if moment[axis] <= limit), default=None)


def curve_lines(curves: Mapping[str, Curve], candidates: int, seconds: float) -> Iterator[str]:
    """A column per search, a row per power of ten of candidates and of seconds, up to the end."""
    yield _row("best so far, µs, at", [*curves])
    for limit in _moments(FEWEST, candidates):
        yield _row(f"{limit:,.0f} candidates", _cells(curves, CANDIDATES, limit))
    for limit in _moments(SOONEST, seconds):
        yield _row(f"{limit:g} s", _cells(curves, SECONDS, limit))


def _moments(first: int, end: float) -> list[float]:
    """Powers of ten below the end, and the end."""
    last = ceil(log10(end)) if end > 0 else first
    return [10.0**exponent for exponent in range(first, last)] + [end] * (end > 0)


def _cells(curves: Mapping[str, Curve], axis: int, limit: float) -> list[str]:
    found = (best_by(curve, axis, limit) for curve in curves.values())
    return ["none" if ns is None else f"{ns / 1e3:,.2f}" for ns in found]


def _row(name: str, cells: list[str]) -> str:
    return f"{name:>20}" + "".join(f"{cell:>14}" for cell in cells)
