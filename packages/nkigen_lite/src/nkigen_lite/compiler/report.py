"""A kernel as text: the result of each pass, the fusion groups, its cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Any

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Buffer, Call, Loop, Program, Statement, peaks
from neuroncore.targets import resolve_target
from neuroncore.timeline import estimate
from nkigen_lite.fusion import Group, Plan
from nkigen_lite.ir import Graph, print_graph

_ARRAY = re.compile(r"'([\w+/]{24})[\w+/=]+'")
"""The bytes of a constant, as graphs print them."""


def explained(
    passes: Mapping[str, Graph], plan: Plan, stats: Stats, program: Program
) -> str:  # fmt: skip
    """Everything about a kernel but its source."""
    traced = next(iter(passes.values()))
    moved = "\n".join(["== HBM traffic ==", *map(str, traffic(program)), ""])
    parts = passes_text(passes), plan_text(plan), moved
    return "\n".join([*parts, stats_text(stats, least_bytes(traced))])


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes of HBM that DMAs move for an array, and the least: arguments are read once, results
    written once, arrays between groups not at all."""

    array: str
    read: int
    written: int
    least: int

    def __str__(self) -> str:
        more = f"; the least is {self.least:,} B" if self.read + self.written > self.least else ""
        return f"{self.array}: {self.read:,} B read, {self.written:,} B written{more}"


def traffic(program: Program) -> list[Traffic]:
    """The traffic of every array that DMAs move."""
    moved, buffers = Counter[tuple[str, bool]](), program.buffers()
    _add_traffic(moved, program.body, 1, buffers)
    ends = {p.name for p in program.parameters} | set(program.results)
    return [
        Traffic(name, moved[name, False], moved[name, True], b.num_bytes if name in ends else 0)
        for name, b in buffers.items() if moved[name, False] + moved[name, True]
    ]  # fmt: skip


def explanation(passes: Mapping[str, Graph], plan: Plan, program: Program) -> dict[str, Any]:
    """The same as an object of JSON."""
    parts = ("groups", "strips", "rejections", "notes")
    return {
        "passes": {name: print_graph(graph) for name, graph in passes.items()},
        **{part: list(map(str, getattr(plan, part))) for part in parts},
        "traffic": list(map(asdict, traffic(program))),
        "least_bytes": least_bytes(next(iter(passes.values()))),
    }


def _add_traffic(
    moved: Counter[tuple[str, bool]], body: tuple[Statement, ...], times: int,
    buffers: Mapping[str, Buffer],
) -> None:  # fmt: skip
    for statement in body:
        if isinstance(statement, Loop):
            _add_traffic(moved, statement.body, times * statement.trips, buffers)
        elif isinstance(statement, Call) and statement.is_dma:
            for name, access in statement.operands.items():
                if isinstance(access, Access) and not buffers[access.buffer].space.on_chip:
                    moved[access.buffer, name == "dst"] += times * _bytes_of(access, buffers)


def _bytes_of(access: Access, buffers: Mapping[str, Buffer]) -> int:
    return access.size * (access.dtype or buffers[access.buffer].dtype).itemsize


def passes_text(passes: Mapping[str, Graph]) -> str:
    """Every pass's graph; one that changed nothing is named only, arrays are cut short."""
    parts, before = [], ""
    for name, graph in passes.items():
        text = _ARRAY.sub(r"'\1…'", print_graph(graph))
        parts.append(f"== {name} ==\n" + ("(as before)\n" if text == before else text))
        before = text
    return "\n".join(parts).replace("\\n", "\n        ")


def plan_text(plan: Plan) -> str:
    """The fusion groups in the order in which they run, and why there is more than one."""
    groups = [
        f"group {number}: {group}; reads {_bytes(plan, read):,} B, leaves {_bytes(plan, left):,} B"
        for number, (group, read, left) in enumerate(_exchanged(plan))
    ]
    lines = ["== fusion groups ==", *(groups or ["none: results are only views of arguments"])]
    lines += [*plan.strips, *plan.notes]
    if plan.rejections:
        lines += ["", "== not fused =="]
        for rejection in plan.rejections:
            place = rejection.node.origin
            lines.append(
                f"{rejection} ({PurePath(place.file).name}:{place.line})"
                if place
                else f"{rejection}"
            )
    return "\n".join([*lines, ""])


def _exchanged(plan: Plan) -> Iterator[tuple[Group, set[str], set[str]]]:
    """Every group with the arrays that it reads and the values that others read, or that are
    results."""
    stored = plan.stored()
    for group in plan.groups:
        read = {plan.base_of(o) for n in group.nodes for o in n.operands}
        yield group, read - group.names - plan.numbers.keys(), stored & group.names


def _bytes(plan: Plan, values: set[str]) -> int:
    specs = plan.graph.specs
    return sum(specs[v].size * specs[v].dtype.itemsize for v in values)


def least_bytes(graph: Graph) -> int:
    """Bytes of arguments and results, each once."""
    specs = [v.spec for v in graph.inputs] + [graph.specs[r] for r in dict.fromkeys(graph.results)]
    return sum(s.size * s.dtype.itemsize for s in specs)


def stats_text(stats: Stats, least: int) -> str:
    """The cost of one execution, as text."""
    return (
        "== cost ==\n"
        f"{stats.instructions} instructions, {stats.dmas} of them DMAs\n"
        f"{stats.hbm_bytes} bytes of HBM read and written; arguments and results are {least}\n"
        f"{stats.peak_sbuf_bytes_per_partition} bytes of SBUF per partition, "
        f"{stats.psum_banks} banks of PSUM\n"
        f"{stats.predicted_us:.1f} us predicted, without the launch; {stats.bound_us:.1f} us is the"
        f" least by {stats.bound_by}\n"
    )


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of one execution on one core.

    `instructions` are executed ones, DMAs included; `hbm_bytes` what DMAs read and write at the HBM
    side, replicas counted; `predicted_us` the timeline's mode "device", without the launch.
    `bound_us` is the roofline: the time that `bound_by`, an engine or the DMAs ("dma"), is busy.
    """

    instructions: int
    dmas: int
    hbm_bytes: int
    peak_sbuf_bytes_per_partition: int
    psum_banks: int
    predicted_us: float
    bound_us: float
    bound_by: str


def measure(program: Program) -> Stats:
    """The stats of a program that `check` has passed."""
    instructions, dmas, hbm_bytes = _counts(program.body, program)
    found = peaks(program, resolve_target(program.target))
    timeline = estimate(program, verified=True)
    held = {space: peak.held for space, peak in found.items()}
    return Stats(
        instructions, dmas, hbm_bytes, held.get(MemorySpace.sbuf, 0), held.get(MemorySpace.psum, 0),
        timeline.total_ns / 1e3, timeline.busiest_ns / 1e3, timeline.bottleneck,
    )  # fmt: skip


def _counts(body: tuple[Statement, ...], program: Program) -> tuple[int, int, int]:
    """(instructions, DMAs, HBM bytes) of a block."""
    buffers = program.buffers()
    totals = [0, 0, 0]
    for statement in body:
        if isinstance(statement, Loop):
            inner = _counts(statement.body, program)
            totals = [t + statement.trips * n for t, n in zip(totals, inner, strict=True)]
        elif isinstance(statement, Call):
            dma = statement.is_dma
            moved = sum(
                _bytes_of(a, buffers)
                for a in statement.operands.values()
                if isinstance(a, Access) and not buffers[a.buffer].space.on_chip
            )
            totals = [totals[0] + 1, totals[1] + dma, totals[2] + (moved if dma else 0)]
    return totals[0], totals[1], totals[2]
