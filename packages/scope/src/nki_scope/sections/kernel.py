"""A timeline as a section of a page: bars, calls, lanes, memory, critical path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from neuroncore.program import Access, Call, Loop, Statement, walk
from neuroncore.program import calls as calls_of
from neuroncore.timeline import CAUSES, KINDS, Timeline, machine, ticks_per_ns
from nki_scope.document import Columns, Sources, ticks

LANES = ("tensor", "vector", "scalar", "gpsimd", "sync")

UNCHANGED = ["nothing is moved", "the kernel as written is as fast"]
"""What a page has for a kernel that its toolchain does not change."""


def kernel_section(
    timeline: Timeline,
    calls: Sequence[Call],
    columns: Columns,
    sources: Sources,
) -> dict[str, Any]:
    """The section of a page about a timeline; bars and lives go into columns, in ticks.

    `calls`: all that the page names, the ones of the timeline first.
    """
    facts = machine(timeline.target)
    per_ns = ticks_per_ns(facts)
    bars = {**timeline.columns, "instance": instances_of(timeline)}
    path = timeline.critical_path()
    return {
        "name": _name(timeline), "target": timeline.target, "mode": timeline.mode,
        "assumed": [[each.name, each.does] for each in timeline.changes] or [UNCHANGED],
        "nki": timeline.program.nki, "perNs": per_ns, "totalNs": timeline.total_ns,
        "launchNs": timeline.launch_ns, "mfu": timeline.mfu, "mbu": timeline.mbu,
        "dmaEfficiency": timeline.dma_efficiency, "hbmBytes": timeline.hbm_bytes,
        "flops": timeline.flops, "numOps": timeline.num_ops,
        "bottleneck": timeline.bottleneck,
        "peaks": {"tflops": facts["peak_tflops"], "hbm": facts["hbm_gbps"]},
        "lanes": {n: {"busy": u.busy_ns, "stalls": u.stalls} for n, u in timeline.lanes.items()},
        "calls": [_call(call, sources) for call in calls],
        "kinds": KINDS, "causes": CAUSES, "laneNames": LANES,
        "repeats": timeline.repeats,
        "bars": {name: columns.add(column) for name, column in bars.items()},
        "path": {
            "bar": columns.add([step.bar.number for step in path]),
            "ticks": columns.add(ticks([step.path_ns for step in path], per_ns)),
        },
        "loops": list(_loops(timeline, sources)),
    }  # fmt: skip


def _name(timeline: Timeline) -> str:
    name = timeline.program.name
    return name if timeline.core is None else f"{name}, core {timeline.core}"


def _call(call: Call, sources: Sources) -> dict[str, Any]:
    return {
        "instruction": call.instruction, "name": call.name, "at": sources.at(call.origin),
        "operands": {name: _text(value) for name, value in call.given()}, "flops": _flops(call),
    }  # fmt: skip


def _text(value: Any) -> str:
    if isinstance(value, Access):
        return f"{value.buffer} {list(value.shape)}"
    return getattr(value, "name", str(value))


def _flops(call: Call) -> int:
    """Floating-point operations of one execution of a matmul."""
    stationary, moving = (call.operands.get(name) for name in ("stationary", "moving"))
    if not isinstance(stationary, Access) or not isinstance(moving, Access):
        return 0
    return 2 * stationary.size * moving.size // (moving.shape[0] or 1)


def _loops(timeline: Timeline, sources: Sources) -> Iterator[dict[str, Any]]:
    """The loops with their matmuls and HBM bytes, and while how much time any of it is played.

    None where not every iteration was played.
    """
    loops = [each for each in walk(timeline.program.body) if isinstance(each, Loop)]
    if timeline.repeats or not loops:
        return
    bars, trips = timeline.columns, list(_trips(timeline.program.body))
    places = {id(call): place for place, call in enumerate(calls_of(timeline.program.body))}
    for loop in loops:
        inside = {places[id(call)]: call for call in calls_of(loop.body)}
        first, last = min(inside, default=-1), max(inside, default=-1)
        own = (first <= bars["call"]) & (bars["call"] <= last)
        covered = _covered(bars["start"][own], bars["end"][own])
        yield {
            "name": f"for {loop.variable} in range({loop.trips})",
            "at": sources.at(loop.origin),
            "flops": sum(_flops(call) * trips[place] for place, call in inside.items()),
            "hbmBytes": int(bars["bytes"][own].sum()),
            "ns": covered / ticks_per_ns(machine(timeline.target)),
            "calls": [first, last],
        }  # fmt: skip


def _covered(starts: np.ndarray, ends: np.ndarray) -> int:
    """How long at least one of the intervals lasts."""
    order = np.argsort(starts)
    starts, ends = starts[order], ends[order]
    until = np.maximum.accumulate(np.append(0, ends))[:-1]
    return int(np.maximum(0, ends - np.maximum(starts, until)).sum())


def instances_of(timeline: Timeline) -> list[int]:
    """For each bar the number of its instruction in the order of execution.

    An instruction of several bars has as many in every iteration, beside loads of tables. Where
    not every iteration was played, the numbers are not known: -1.
    """
    if timeline.repeats:
        return [-1] * timeline.num_bars
    call, trips = timeline.columns["call"], list(_trips(timeline.program.body))
    is_load = timeline.columns["kind"] == KINDS.index("table_load")
    each = np.maximum(1, np.bincount(call[~is_load], minlength=len(trips)) // trips)
    return list(_instances(each[call].tolist(), is_load.tolist()))


def _instances(bars_of_instruction: Sequence[int], is_load: Sequence[bool]) -> Iterator[int]:
    due, now = 0, -1
    for bars, loads in zip(bars_of_instruction, is_load, strict=True):
        if due == 0:
            now, due = now + 1, bars
        due -= not loads
        yield now


def _trips(body: tuple[Statement, ...], times: int = 1) -> Iterator[int]:
    """How often each call is executed, in the order of `calls`."""
    for statement in body:
        if isinstance(statement, Loop):
            yield from _trips(statement.body, times * statement.trips)
        elif isinstance(statement, Call):
            yield times
