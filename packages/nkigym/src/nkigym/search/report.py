"""What a search has done, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

GATES = ("step", "legality", "capacity", "bound")
"""The gates that can reject a candidate, in this order; the timeline estimates the others."""


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

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For a person."""
        rejected = [
            f"  {number:>9,} at {gate}: {reason}"
            for gate, reasons in self.funnel.items()
            for reason, number in reasons.items()
        ]
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
        ]
