"""Which engine the compiler gives what a kernel left open: VectorE and ScalarE share it evenly.

A deliberately simple model: calls that both can execute are dealt out once, the longest (times its
iterations) first, each to the engine that would then be done first with everything it has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from neuroncore.program import Call, Loop, Statement
from neuroncore.timeline.clock import Clock
from neuroncore.timeline.lanes import LANE
from neuroncore.work import Pass


def dealt_out(
    body: tuple[Statement, ...],
    clock: Clock,
    ways: Mapping[int, Sequence[Pass]],
) -> dict[int, int]:
    """Call (by id) → which of its `ways` to take; the first is what the call does as written."""
    weights = dict(_iterations(body, 1))
    load: dict[int, float] = {}
    open_calls = []
    for call, trips in weights.items():
        each = [
            (LANE[op.engine], clock.cycles(LANE[op.engine], op.interval))
            for op in ways.get(call, ())
        ]
        if len(each) == 1:
            lane, ticks = each[0]
            load[lane] = load.get(lane, 0) + ticks * trips
        elif each:
            open_calls.append((trips, call, each))
    chosen: dict[int, int] = {}
    for trips, call, each in sorted(open_calls, key=lambda c: -c[0] * max(t for _, t in c[2])):
        done = [load.get(lane, 0) + ticks * trips for lane, ticks in each]
        chosen[call] = way = done.index(min(done))
        load[each[way][0]] = done[way]
    return chosen


def _iterations(body: tuple[Statement, ...], trips: int) -> Iterator[tuple[int, int]]:
    """Every call, by id, and how often it is executed."""
    for statement in body:
        if isinstance(statement, Loop):
            yield from _iterations(statement.body, trips * statement.trips)
        elif isinstance(statement, Call):
            yield id(statement), trips
