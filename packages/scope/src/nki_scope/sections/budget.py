"""A budget of micro-ops for the estimates of a page, so that every run makes the same ones."""

from __future__ import annotations

from math import inf

from neuroncore.commands.terminal import StatusLine
from neuroncore.program import calls
from neuroncore.timeline import Timeline

MOST_PLAYED = 60_000
"""Compiled calls and played micro-ops of all estimates of a page: about 3 seconds of CPU."""
NOT_PLAYED = "not played, the page would take too long: --advice all, or page(…, advice='all')"


class Budget:
    """What remains for the estimates of one kernel, and how many were made and left out."""

    def __init__(self, micro_ops: float = inf) -> None:
        self.remaining = micro_ops
        self.played = self.left_out = 0
        self._status = StatusLine()

    def takes(self, timeline: Timeline) -> bool:
        """Whether one more estimate of its kernel is made, which is then counted."""
        cost = timeline.num_bars + sum(1 for _ in calls(timeline.source.body))
        if cost > self.remaining:
            self.left_out += 1
            return False
        self.remaining -= cost
        self.played += 1
        self._status.show(f"{timeline.program.name}: variant {self.played}")
        return True

    def close(self) -> None:
        """Remove the line of progress."""
        self._status.close()
