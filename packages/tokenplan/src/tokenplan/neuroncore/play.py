"""A plan played on the timeline: how long it takes, what waits for what, beside other orders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neuroncore.program import Program
from neuroncore.timeline import Timeline, estimate
from tokenplan.graph.token_graph import TokenGraph
from tokenplan.neuroncore.counters import values_of
from tokenplan.neuroncore.nests import Nests
from tokenplan.neuroncore.order import PlannedOrder, SerialOrder
from tokenplan.neuroncore.plan import AsyncPlan, all_pairs


@dataclass(frozen=True, slots=True)
class Played:
    """A plan that was played. Times are ns."""

    plan: AsyncPlan
    timeline: Timeline
    bars: Mapping[str, list[tuple[int, int]]]
    """Operation → first and last bar of each of its instances."""

    @property
    def makespan_ns(self) -> float:
        return self.timeline.total_ns

    @property
    def busiest(self) -> tuple[str, float]:
        """The lane that is busy longest, and for how long."""
        lane = self.timeline.bottleneck
        return lane, self.timeline.lanes[lane].busy_ns

    @property
    def ratio(self) -> float:
        """The makespan over the busiest lane's own time."""
        return self.makespan_ns / self.busiest[1] if self.busiest[1] else 1.0

    @property
    def bandwidth_share(self) -> float:
        """For how much of the time the DMA engines were busy."""
        lanes = self.timeline.lanes
        return lanes["dma"].busy_ns / self.makespan_ns if self.makespan_ns else 0.0

    def exposed(self) -> dict[str, dict[str, float]]:
        """Engine → cause → the time it is idle between its first and last instruction."""
        lanes = self.timeline.lanes
        return {name: lanes[name].stalls for name in lanes if lanes[name].stalls and name != "dma"}


def play(graph: TokenGraph, plan: AsyncPlan, program: Program) -> Played:
    """The plan of `program`'s kernel with the times of the timeline, every instance."""
    order = PlannedOrder(graph, plan)
    timeline = estimate(program, verified=True, order=order)
    bars = {op.id: gate.played for op, gate in zip(order.ops, order.gates, strict=True)}
    return Played(plan, timeline, bars)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A plan beside a kernel in one stream and beside one that waits for every conflict."""

    planned: Played
    all_pairs: Played
    serial_ns: float
    waits: int
    """Waits of the plan that are executed in one run, and those with every conflict."""
    all_waits: int


def compare(graph: TokenGraph, plan: AsyncPlan, program: Program) -> Comparison:
    """Play the plan, the same with all pairs waiting, and everything in one stream."""
    every = all_pairs(graph, plan)
    serial = estimate(program, verified=True, order=SerialOrder(program.target))
    return Comparison(
        play(graph, plan, program), play(graph, every, program), serial.total_ns,
        executed(graph, plan), executed(graph, every),
    )  # fmt: skip


def executed(graph: TokenGraph, plan: AsyncPlan) -> int:
    """How many waits are made in one run; a counter that was waited for already is none."""
    nests = Nests(graph.kernel, plan.queues)
    found = 0
    for wait in plan.waits:
        values = values_of(nests, wait.op, wait.distance, wait.count)
        found += int((np.diff(values, prepend=0) > 0).sum())
    return found
