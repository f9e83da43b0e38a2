"""Measurements in a store, as soon as they are made."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from math import inf
from typing import Any

from nkigym.runners.protocol import Measurement
from nkigym.store import Problem, Store


@dataclass(slots=True)
class Recording:
    """The measurements of a problem by a runner, the fastest first."""

    store: Store
    problem: Problem
    runner: str
    results: list[Measurement] = field(default_factory=list)
    _number: int | None = None

    def add(self, found: Measurement) -> None:
        """Keep a measurement. Raises StoreError."""
        self.results.append(found)
        self.results.sort(key=_order)
        report = {"runner": self.runner, "measurements": self.rows}
        if self._number is None:
            self.store.add(self.problem)
            self._number = self.store.add_run(self.problem, report)
        else:
            self.store.replace_run(self._number, report)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Plain values."""
        return [{"runner": self.runner, **asdict(each)} for each in self.results]


def _order(each: Measurement) -> tuple[float, int, str]:
    """By latency; equal ones by number."""
    return inf if each.p50_ns is None else each.p50_ns, len(each.key), each.key
