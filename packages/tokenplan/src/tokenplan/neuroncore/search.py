"""Search for slots and queues: bounded, over plans that are played."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from neuroncore.program import Loop, Program, Statement
from neuroncore.targets import resolve_target
from tokenplan.graph.token_graph import TokenGraph
from tokenplan.kernel.model import Kernel, Mode, Node, Op
from tokenplan.kernel.model import Loop as PlanLoop
from tokenplan.neuroncore.capacity import held, rotating
from tokenplan.neuroncore.machine import DMA
from tokenplan.neuroncore.nests import with_trips
from tokenplan.neuroncore.plan import AsyncPlan, deal, plan_with
from tokenplan.neuroncore.play import play

MOST_SLOTS = 4
"""Places of a buffer that are tried."""
AS_FAST = 1.002
"""A plan that takes at most so much longer than another is as good."""
LONG_RUN = 4_000
"""Instances beyond which the search plays fewer iterations of outermost loops."""


def schedule(graph: TokenGraph, program: Program) -> AsyncPlan:
    """The plan of `program`'s kernel that was fastest among those played.

    Buffers of loops get one place more each as long as that helps and all fit on chip; then each
    gives back what does not cost time. DMAs have a queue each, or share one for loads and one for
    stores where that is as fast, and buffers give back what its order saves. Deterministic: the
    same kernel, the same plan.
    """
    kernel = graph.kernel
    short = _short(graph, program)
    search = _Search(*short)
    made = rotating(kernel)
    queues = deal(kernel)
    slots = dict.fromkeys(made, 1)
    best = search.time(slots, queues)
    for places in range(2, MOST_SLOTS + 1):
        wider = _fitting(graph, made, places)
        if wider == slots:
            break
        time = search.time(wider, queues)
        if time * AS_FAST < best:
            best, slots = time, wider
    slots = search.narrowed(slots, queues, best)
    shared = by_direction(kernel)
    if search.time(slots, shared) <= best * AS_FAST:
        queues, slots = shared, search.narrowed(slots, shared, best)
    return plan_with(graph, slots, queues)


def by_direction(kernel: Kernel) -> dict[str, str]:
    """Operation → queue: one for DMAs that fill on-chip memory, one for the others."""
    found = {}
    for op in kernel.ops():
        spaces = {kernel.buffers[a.buffer].space for a in op.accesses if a.mode is not Mode.read}
        is_store = any("hbm" in space for space in spaces)
        found[op.id] = f"{DMA}{int(is_store)}" if op.engine == DMA else op.engine
    return found


@dataclass(slots=True)
class _Search:
    graph: TokenGraph
    program: Program
    known: dict[tuple, float] = field(default_factory=dict)

    def time(self, slots: Mapping[str, int], queues: Mapping[str, str]) -> float:
        """Makespan of the plan with these decisions, in ns."""
        key = tuple(slots.items()), tuple(queues.items())
        if key not in self.known:
            plan = plan_with(self.graph, slots, queues)
            self.known[key] = play(self.graph, plan, self.program).makespan_ns
        return self.known[key]

    def narrowed(
        self, slots: dict[str, int], queues: Mapping[str, str], best: float
    ) -> dict[str, int]:
        """The slots without the ones that save no time, largest buffers first."""
        buffers = self.graph.kernel.buffers
        for name in sorted(slots, key=lambda n: (-buffers[n].num_bytes, n)):
            while slots[name] > 1:
                fewer = {**slots, name: slots[name] - 1}
                if self.time(fewer, queues) > best * AS_FAST:
                    break
                slots = fewer
        return slots


def _fitting(graph: TokenGraph, made: Mapping[str, int], places: int) -> dict[str, int]:
    """So many places for every buffer that is made as often, as far as they fit."""
    target, buffers = resolve_target(graph.kernel.target), graph.kernel.buffers
    slots = dict.fromkeys(made, 1)
    for more in range(2, places + 1):
        for name in sorted(made, key=lambda n: (buffers[n].num_bytes, n)):
            wider = {**slots, name: min(more, max(1, made[name]))}
            if held(graph.kernel, wider).fits(target):
                slots = wider
    return slots


def _short(graph: TokenGraph, program: Program) -> tuple[TokenGraph, Program]:
    """The kernel with fewer iterations of its outermost loops, where it is long."""
    per_loop = [n for n in graph.kernel.body if isinstance(n, PlanLoop)]
    total = sum(_instances(node) for node in graph.kernel.body)
    if total <= LONG_RUN:
        return graph, program
    most = {}
    for loop in per_loop:
        each = max(1, _instances(loop) // max(1, loop.trips))
        most[loop.id] = max(2 * MOST_SLOTS, LONG_RUN // (each * len(per_loop)))
    numbers = iter([most[loop.id] for loop in per_loop])

    def cut(statement: Statement) -> Statement:
        if isinstance(statement, Loop):
            trips = min(statement.trips, next(numbers))
            return replace(statement, stop=statement.start + trips * statement.step)
        return statement

    body = tuple(cut(statement) for statement in program.body)
    return replace(graph, kernel=with_trips(graph.kernel, most)), replace(program, body=body)


def _instances(node: Node) -> int:
    if isinstance(node, Op):
        return 1
    return node.trips * sum(_instances(inner) for inner in node.body)
