"""The result of a tuning run, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from neuroncore.program import Program
from nkigym.search import Report
from nkigym.store import StoreError
from nkigym.tuning.verification import Check


@dataclass(frozen=True, slots=True)
class Tuned:
    """The winner: its program, its source, the schedule that makes it of the root (as JSON), what
    was asked of it, and the figures of the search. Rooflines are ns by resource.
    """

    root: Program
    program: Program
    source: str
    schedule: tuple[Any, ...]
    report: Report
    checks: tuple[Check, ...]
    rooflines: Mapping[str, float]
    root_rooflines: Mapping[str, float]
    trouble: StoreError | None = None
    """Why the store does not contain every result."""
    stored_ns: float | None = None
    """The latency of the store's fastest program, where it is below that of this search."""

    @property
    def binding(self) -> str:
        """The resource that needs longest."""
        return max(self.rooflines, key=lambda name: self.rooflines[name])

    @property
    def ratio(self) -> float:
        """The winner's time against what that resource needs at least."""
        return self.report.best_ns / self.rooflines[self.binding]

    @property
    def speedup(self) -> float:
        """How many times faster it is than the kernel it began with."""
        return self.report.root_ns / self.report.best_ns

    def __str__(self) -> str:
        return text(self)

    def to_json(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {
            "name": self.root.name,
            "target": self.root.target,
            "nki": self.root.nki,
            "report": self.report.to_json(),
            "binding": self.binding,
            "ratio": self.ratio,
            "rooflines_ns": dict(self.rooflines),
            "checks": [str(check) for check in self.checks],
            "schedule": list(self.schedule),
            "source": self.source,
        }


def text(tuned: Tuned) -> str:
    """Times and rooflines before and after, figures, checks, schedule, source."""
    return "\n".join([*_table(tuned), "", *_found(tuned), "", *_schedule(tuned), *_source(tuned)])


def _table(tuned: Tuned) -> Iterator[str]:
    """Times, and what resources need at least, before and after."""
    report = tuned.report
    yield f"{tuned.root.name} on {tuned.root.target}, NKI {tuned.root.nki}, as written"
    yield f"{'':10}{'begun with':>16}{'best':>16}"
    yield _row("time", report.root_ns, report.best_ns) + f"{tuned.speedup:9.2f} times as fast"
    for name in dict.fromkeys((*tuned.rooflines, *tuned.root_rooflines)):
        row = _row(name, tuned.root_rooflines.get(name, 0.0), tuned.rooflines.get(name, 0.0))
        yield row + (f"{tuned.ratio:9.2f} x roofline" if name == tuned.binding else "")


def _row(name: str, before_ns: float, after_ns: float) -> str:
    return f"{name:10}{before_ns / 1e3:13,.2f} µs{after_ns / 1e3:13,.2f} µs"


def _found(tuned: Tuned) -> Iterator[str]:
    yield from tuned.report.lines()
    report = tuned.report
    if report.candidates:
        yield f"again: --strategy {report.strategy} --seed {report.seed} " + (
            f"--budget {report.candidates}"
        )
    else:
        yield "the budget was spent before the first candidate: give it more"
    if tuned.stored_ns is not None:
        yield f"the store has one that takes {tuned.stored_ns / 1e3:,.2f} µs: nkigym best"
    yield from map(str, tuned.checks)


def _schedule(tuned: Tuned) -> Iterator[str]:
    yield f"schedule, {len(tuned.schedule)} steps"
    yield from (f"  {json.dumps(step)}" for step in tuned.schedule)


def _source(tuned: Tuned) -> Iterator[str]:
    if tuned.source:
        yield from ("", tuned.source.rstrip())
