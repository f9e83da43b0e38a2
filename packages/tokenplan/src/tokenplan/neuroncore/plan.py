"""The async plan: what each queue executes, how many places buffers have, who waits for whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from neuroncore.errors import AttributeValueError
from neuroncore.findings import ShownAsHtml
from neuroncore.program import Affine
from neuroncore.targets import resolve_target
from tokenplan.graph.token_graph import IMPLIED, KEPT, TokenGraph
from tokenplan.kernel.model import Kernel, Mode, shared_loops
from tokenplan.neuroncore.capacity import held, rotating
from tokenplan.neuroncore.clocks import minimal
from tokenplan.neuroncore.machine import DMA, machine
from tokenplan.neuroncore.needs import Need, all_needs, of_edges
from tokenplan.neuroncore.nests import Nests


@dataclass(frozen=True, slots=True)
class Wait:
    """An instance of `op` starts when the counter of `queue` is at least `unit` times `count`.

    `count` is affine in iterations of loops around both; it is taken `distance` iterations before
    the instance's own. Where that is before the first iteration there is nothing to wait for.
    """

    op: str
    queue: str
    after: str
    distance: tuple[int, ...]
    count: Affine
    unit: int
    why: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        count = {"constant": self.count.constant, "terms": dict(self.count.terms)}
        return {
            "op": self.op, "queue": self.queue, "after": self.after,
            "distance": list(self.distance), "count": count, "unit": self.unit,
            "why": list(self.why),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class AsyncPlan(ShownAsHtml):
    """How a kernel runs on queues that know of one another by counters alone.

    Every queue executes its instances in program order. `slots` says in how many places a buffer of
    a loop lives in turn, `prefetch` how many iterations of a loop loads may so run ahead, `stages`
    which operations of an iteration wait for which others (the first for none), `proof` how far it
    was shown that the waits order everything.
    """

    slots: Mapping[str, int]
    prefetch: Mapping[str, int]
    stages: tuple[tuple[str, ...], ...]
    queues: Mapping[str, str]
    waits: tuple[Wait, ...]
    proof: str = ""

    def as_json(self) -> dict[str, Any]:
        """The `plan` of a plan file."""
        return {
            "slots": dict(self.slots), "prefetch": dict(self.prefetch),
            "stages": [list(stage) for stage in self.stages], "queues": dict(self.queues),
            "waits": [wait.as_json() for wait in self.waits],
        }  # fmt: skip


def deal(kernel: Kernel) -> dict[str, str]:
    """Operation → queue: engines have their own, DMAs take those there are in turn."""
    dmas = [op.id for op in kernel.ops() if op.engine == DMA]
    number = {op: n % machine().dma_queues for n, op in enumerate(dmas)}
    return {
        op.id: f"{DMA}{number[op.id]}" if op.engine == DMA else op.engine for op in kernel.ops()
    }


def plan_with(graph: TokenGraph, slots: Mapping[str, int], queues: Mapping[str, str]) -> AsyncPlan:
    """The plan with these slots and queues, and as few waits as order everything.

    Raises AttributeValueError where buffers with so many places do not fit on chip.
    """
    kernel = graph.kernel
    made = rotating(kernel)
    slots = {name: min(slots.get(name, 1), max(1, times)) for name, times in made.items()}
    _check_fits(kernel, slots)
    nests = Nests(kernel, queues)
    needs = all_needs(kernel, graph.edges, slots)
    found = minimal(nests, needs)
    return AsyncPlan(
        slots, prefetch(kernel, slots), stages(graph, queues), dict(queues),
        waits_of(nests, found.kept), found.proof,
    )  # fmt: skip


def waits_of(nests: Nests, needs: Iterable[Need]) -> tuple[Wait, ...]:
    """The needs as waits, in program order; needs of the same count are one wait."""
    ops = nests.by_id
    order = {op: number for number, op in enumerate(ops)}
    found: dict[tuple, list[str]] = {}
    for need in needs:
        shared = len(shared_loops(ops[need.op], ops[need.after]))
        distance = need.distance + (0,) * (shared - len(need.distance))
        affine = nests.completions(ops[need.after], len(need.distance))
        key = need.op, nests.queue[need.after], need.after, distance, affine
        found.setdefault(key, []).append(need.why)
    waits = [
        Wait(op, queue, after, distance, affine, machine().step(queue), tuple(dict.fromkeys(why)))
        for (op, queue, after, distance, affine), why in found.items()
    ]
    return tuple(sorted(waits, key=lambda w: (order[w.op], w.queue, order[w.after], w.distance)))


def all_pairs(graph: TokenGraph, plan: AsyncPlan) -> AsyncPlan:
    """The same plan with a wait for every conflict between queues, none left out."""
    nests = Nests(graph.kernel, plan.queues)
    needs = all_needs(graph.kernel, graph.edges, plan.slots, (KEPT, IMPLIED))
    crossing = [n for n in needs if plan.queues[n.op] != plan.queues[n.after]]
    return AsyncPlan(
        plan.slots, plan.prefetch, plan.stages, plan.queues, waits_of(nests, crossing),
        "every conflict between queues waits",
    )  # fmt: skip


def prefetch(kernel: Kernel, slots: Mapping[str, int]) -> dict[str, int]:
    """Loop → how many iterations the loads of its buffers may run ahead of their use."""
    found: dict[str, int] = {}
    for op in kernel.ops():
        if op.engine != DMA:
            continue
        for access in op.accesses:
            buffer = kernel.buffers[access.buffer]
            if access.mode is Mode.write and buffer.id in slots:
                loop = buffer.scope[-1]
                found[loop] = min(found.get(loop, slots[buffer.id] - 1), slots[buffer.id] - 1)
    return found


def stages(graph: TokenGraph, queues: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    """Operations by how often data changes queues on its way to them within an iteration."""
    level = dict.fromkeys((op.id for op in graph.kernel.ops()), 0)
    into: dict[str, list[str]] = {}
    for need in of_edges(graph.kernel, graph.edges, (KEPT, IMPLIED)):
        if need.kind == "RAW" and not any(need.distance):
            into.setdefault(need.op, []).append(need.after)
    for op in level:
        level[op] = max(
            (level[before] + (queues[before] != queues[op]) for before in into.get(op, ())),
            default=0,
        )
    found: dict[int, list[str]] = {}
    for op, number in level.items():
        found.setdefault(number, []).append(op)
    return tuple(tuple(found[number]) for number in sorted(found))


def _check_fits(kernel: Kernel, slots: Mapping[str, int]) -> None:
    found, target = held(kernel, slots), resolve_target(kernel.target)
    if not found.fits(target) and any(places > 1 for places in slots.values()):
        raise AttributeValueError(
            f"buffers with these slots hold {found.sbuf} bytes per partition, {found.psum} banks",
            expected=f"at most {target.usable_sbuf_bytes} bytes and {target.psum_banks} banks",
            operand="slots", hint="give buffers fewer places",
        )  # fmt: skip
