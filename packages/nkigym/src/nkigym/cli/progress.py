"""A line on a terminal that says how far a search is; nothing in a pipe."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from math import inf
from typing import TextIO

from nkigym.search import Budget, Seen

EVERY_S = 0.1


@dataclass(slots=True)
class Progress:
    """Shows candidates, the best against its roofline, what is left of the budget."""

    budget: Budget
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    shown: float = -inf
    """When a line was written last."""

    def __call__(self, seen: Seen) -> None:
        if not self.stream.isatty() or seen.seconds - self.shown < EVERY_S:
            return
        self.shown = seen.seconds
        self.stream.write(f"\r\033[K{line(seen, self.budget)}")
        self.stream.flush()

    def close(self) -> None:
        """The line goes."""
        if self.stream.isatty():
            self.stream.write("\r\033[K")
            self.stream.flush()


def line(seen: Seen, budget: Budget) -> str:
    """What is shown of a moment."""
    left = []
    if budget.seconds < inf:
        left.append(f"{max(0.0, budget.seconds - seen.seconds):.0f} s left")
    if budget.candidates < inf:
        left.append(f"{budget.candidates - seen.candidates:,} left")
    ratio = f" = {seen.best_ns / seen.bound_ns:.2f} x roofline" if seen.bound_ns else ""
    best = f"best {seen.best_ns / 1e3:,.1f} µs{ratio}"
    return ", ".join([f"{seen.candidates:,} candidates", best, *left])
