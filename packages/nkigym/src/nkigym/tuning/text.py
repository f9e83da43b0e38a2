"""A winner for a person to read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nkigym.tuning.tune import Tuned


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
