"""What a search has done, in numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

GATES = ("step", "legality", "capacity", "bound")
"""The gates that can reject a candidate, in this order; the timeline estimates the others."""


MAX_REASONS, MAX_MOMENTS = 5, 8
"""Lines of rejections, and points of a curve, that a person sees; JSON has all of them."""


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
    curve: tuple[tuple[int, float, float], ...] = ()
    """Where the best so far became better: candidates tried, seconds, its latency (ns)."""

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
            + (", rejected:" if rejected else ""),
            *rejected,
            *self._curve(),
        ]

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

    def _curve(self) -> Iterator[str]:
        """The best so far at up to eight moments, over candidates and seconds."""
        every = max(1, -(-len(self.curve) // MAX_MOMENTS))
        moments = [*self.curve[:-1:every], *self.curve[-1:]]
        if moments:
            yield "best so far: " + ", ".join(
                f"{ns / 1e3:,.2f} µs at {candidates:,} ({seconds:.1f} s)"
                for candidates, seconds, ns in moments
            )
