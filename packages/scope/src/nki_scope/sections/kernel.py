"""A timeline as a section of a page: bars, calls, lanes, memory, critical path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from operator import attrgetter
from typing import Any

from neuroncore.program import Access, Call, Loop, Program, Statement, walk
from neuroncore.program import calls as calls_of
from neuroncore.timeline import CAUSES, Bar, Timeline, machine, ticks_per_ns
from nki_scope.document import Columns, Sources

LANES = ("tensor", "vector", "scalar", "gpsimd", "sync")
KINDS = ("load_stationary", "multiply_moving", "pass", "table_load", "transfer")


def kernel_section(
    timeline: Timeline,
    calls: Sequence[Call],
    instances: Sequence[int],
    columns: Columns,
    sources: Sources,
) -> dict[str, Any]:
    """The section of a page about a timeline; bars and lives go into columns, in ticks.

    `calls`: all that the page names, the ones of the timeline first.
    """
    facts = machine(timeline.target)
    per_ns = ticks_per_ns(facts)
    bars = timeline.bars
    numbers = {id(call): number for number, call in enumerate(calls)}
    path = timeline.critical_path()
    return {
        "name": _name(timeline), "target": timeline.target, "mode": timeline.mode,
        "assumed": [[each.name, each.does] for each in timeline.assumed],
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
        "bars": _bars(bars, numbers, instances, per_ns, columns),
        "path": {
            "bar": columns.add(map(attrgetter("bar.number"), path)),
            "ticks": columns.add([round(step.path_ns * per_ns) for step in path]),
        },
        "loops": list(_loops(timeline, numbers, sources)),
    }  # fmt: skip


def _name(timeline: Timeline) -> str:
    name = timeline.program.name
    return name if timeline.core is None else f"{name}, core {timeline.core}"


_COLUMNS: dict[str, Callable[[Bar], int]] = {
    "lane": lambda bar: LANES.index(bar.lane) if bar.queue is None else len(LANES) + bar.queue,
    "kind": lambda bar: KINDS.index(bar.kind),
    "cause": lambda bar: -1 if bar.waited_for is None else bar.waited_for,
    "why": lambda bar: CAUSES.index(bar.why),
    "bytes": lambda bar: bar.hbm_bytes,
}
"""What a page has of a bar beside its call and times: engines by number, DMA queues behind them."""


def _bars(
    bars: Sequence[Bar], numbers: Mapping[int, int], instances: Sequence[int], per_ns: float,
    columns: Columns,
) -> dict[str, Any]:  # fmt: skip
    times = {"start": "start_ns", "busy": "busy_ns", "end": "end_ns"}
    return {
        "call": columns.add([numbers[id(bar.call)] for bar in bars]),
        "instance": columns.add(instances),
        **{n: columns.add([round(getattr(b, f) * per_ns) for b in bars]) for n, f in times.items()},
        **{name: columns.add(map(value, bars)) for name, value in _COLUMNS.items()},
    }


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


def _loops(
    timeline: Timeline, numbers: Mapping[int, int], sources: Sources
) -> Iterator[dict[str, Any]]:
    """The loops with their matmuls and HBM bytes, and while how much time any of it is played.

    None where not every iteration was played.
    """
    if timeline.repeats:
        return
    bars: dict[int, list[Bar]] = {}
    for bar in timeline.bars:
        bars.setdefault(id(bar.call), []).append(bar)
    trips = dict(_trips(timeline.program.body, 1))
    for loop in walk(timeline.program.body):
        if isinstance(loop, Loop):
            inside = list(calls_of(loop.body))
            own = [bar for call in inside for bar in bars.get(id(call), ())]
            yield {
                "name": f"for {loop.variable} in range({loop.trips})",
                "at": sources.at(loop.origin),
                "flops": sum(_flops(call) * trips[id(call)] for call in inside),
                "hbmBytes": sum(bar.hbm_bytes for bar in own), "ns": _covered_ns(own),
                "calls": _first_and_last(inside, numbers),
            }  # fmt: skip


def _first_and_last(calls: Sequence[Call], numbers: Mapping[int, int]) -> list[int]:
    """The least and the greatest number of the calls; -1 without any."""
    found = [numbers[id(call)] for call in calls]
    return [min(found, default=-1), max(found, default=-1)]


def _covered_ns(bars: Sequence[Bar]) -> float:
    """How long at least one of the bars is played."""
    total = until = 0.0
    for start, end in sorted((bar.start_ns, bar.end_ns) for bar in bars):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def instances_of(timeline: Timeline) -> list[int]:
    """For each bar the number of its instruction in the order of execution.

    An instruction of several bars has as many in every iteration, beside loads of tables. Where
    not every iteration was played, the numbers are not known: -1.
    """
    if timeline.repeats:
        return [-1] * timeline.num_bars
    return list(_instances(timeline.program, timeline.bars))


def _instances(program: Program, bars: Sequence[Bar]) -> Iterator[int]:
    trips = dict(_trips(program.body, 1))
    played: dict[int, int] = {}
    for bar in bars:
        if bar.kind != "table_load":
            played[id(bar.call)] = played.get(id(bar.call), 0) + 1
    each = {key: max(1, number // trips[key]) for key, number in played.items()}
    numbers, due, now = count(), 0, -1
    for bar in bars:
        if due == 0:
            now, due = next(numbers), each.get(id(bar.call), 1)
        due -= bar.kind != "table_load"
        yield now


def _trips(body: tuple[Statement, ...], times: int) -> Iterator[tuple[int, int]]:
    """How often each call is executed, by id."""
    for statement in body:
        if isinstance(statement, Loop):
            yield from _trips(statement.body, times * statement.trips)
        elif isinstance(statement, Call):
            yield id(statement), times
