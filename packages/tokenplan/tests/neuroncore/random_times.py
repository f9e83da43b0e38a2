"""A plan under random latencies, and whether its waits order everything, instance by instance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tokenplan.graph.token_graph import TokenGraph
from tokenplan.neuroncore import AsyncPlan, Played
from tokenplan.neuroncore.clocks import Run
from tokenplan.neuroncore.counters import Counted, counted, values_of
from tokenplan.neuroncore.needs import Need, all_needs
from tokenplan.neuroncore.nests import Nests

SPREAD = 16.0
"""Durations are multiplied with 1/SPREAD to SPREAD, evenly distributed in the logarithm."""
AT_ONCE = 1 << 22
"""Numbers that are held at once."""


@dataclass(frozen=True, slots=True)
class Durations:
    """Of every instance, in program order, how long it keeps its queue and when it is complete."""

    interval: np.ndarray
    latency: np.ndarray


def durations(graph: TokenGraph, played: Played) -> Durations:
    """What the timeline took for every instance, in ns."""
    bars, nth = played.timeline.bars, dict.fromkeys(played.bars, 0)
    nests = Nests(graph.kernel, played.plan.queues)
    names = [op.id for op in nests.ops]
    found = []
    for which in nests.sequence():
        name = names[which]
        first, last = played.bars[name][nth[name]]
        nth[name] += 1
        busy = sum(bar.busy_ns for bar in bars[first : last + 1] if bar.kind != "load_stationary")
        end = bars[last].end_ns - bars[last].start_ns - bars[last].busy_ns
        found.append((busy, end))
    interval, latency = np.array(found).reshape(-1, 2).T
    return Durations(interval, latency)


@dataclass(frozen=True, slots=True)
class Instances:
    """One run of a plan as numbers: instances in program order."""

    queue: np.ndarray
    before: tuple[tuple[int, ...], ...]
    """Of every instance, those whose completion it waits for."""
    needed: np.ndarray
    """Pairs (first, second): the second may only start when the first has completed."""


def instances(graph: TokenGraph, plan: AsyncPlan) -> Instances:
    """The run with the plan's waits, and the pairs that kept edges and reused slots ask for."""
    nests = Nests(graph.kernel, plan.queues)
    names = list(nests.by_id)
    number: dict[str, list[int]] = {name: [] for name in names}
    on: dict[str, list[int]] = {queue: [] for queue in plan.queues.values()}
    queue = []
    for at, which in enumerate(nests.sequence()):
        number[names[which]].append(at)
        on[plan.queues[names[which]]].append(at)
        queue.append(plan.queues[names[which]])
    before: list[list[int]] = [[] for _ in queue]
    for wait in plan.waits:
        values = values_of(nests, wait.op, wait.distance, wait.count)
        for at, value in zip(number[wait.op], values.tolist(), strict=True):
            if value:
                before[at].append(on[wait.queue][value - 1])
    needed = [
        (on[need.queue][value - 1], at)
        for need in counted(nests, all_needs(graph.kernel, graph.edges, plan.slots))
        for at, value in zip(number[need.need.op], need.values.tolist(), strict=True)
        if value
    ]
    lanes = {name: n for n, name in enumerate(on)}
    return Instances(
        np.array([lanes[name] for name in queue]), tuple(map(tuple, before)),
        np.array(sorted(set(needed)), np.int64).reshape(-1, 2),
    )  # fmt: skip


def violations(
    run: Instances, takes: Durations, timings: int, seed: int, pairs: np.ndarray | None = None
) -> int:
    """How many of so many random timings let an instance start too early.

    A queue starts an instance when the one before has left it and its waits hold, and completes
    them in order. `pairs` None: the pairs that the run itself reports as needed.
    """
    needed = run.needed if pairs is None else pairs
    random, found = np.random.default_rng(seed), 0
    step = max(1, AT_ONCE // max(1, len(run.queue)))
    for first in range(0, timings, step):
        size = min(step, timings - first)
        start, end = _timed(run, takes, random, size)
        early = np.zeros(size, bool)
        for source, sink in needed:
            early |= start[sink] < end[source]
        found += int(early.sum())
    return found


def _timed(
    run: Instances, takes: Durations, random: np.random.Generator, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Start and completion of every instance, in so many random timings."""
    shape = len(run.queue), size
    spread = np.log(SPREAD)
    interval = takes.interval[:, None] * np.exp(random.uniform(-spread, spread, shape))
    latency = takes.latency[:, None] * np.exp(random.uniform(-spread, spread, shape))
    return _starts(run, interval, latency)


def _starts(
    run: Instances, interval: np.ndarray, latency: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    start, end = np.zeros_like(interval), np.zeros_like(interval)
    last: dict[int, int] = {}
    for at, lane in enumerate(run.queue.tolist()):
        ahead = last.get(lane)
        if ahead is not None:
            np.add(start[ahead], interval[ahead], out=start[at])
        for other in run.before[at]:
            np.maximum(start[at], end[other], out=start[at])
        np.add(start[at], interval[at] + latency[at], out=end[at])
        if ahead is not None:
            np.maximum(end[at], end[ahead], out=end[at])
        last[lane] = at
    return start, end


def races_without(graph: TokenGraph, plan: AsyncPlan, takes: Durations) -> Iterator[bool]:
    """For each wait of the plan, whether some timing shows a race when it alone is left out.

    The timing makes one instance very slow: one that is needed and that nothing else waits for.
    """
    for wait in plan.waits:
        rest = tuple(other for other in plan.waits if other is not wait)
        yield bool(exposed_by(instances(graph, replace(plan, waits=rest)), takes))


def exposed_by(run: Instances, takes: Durations) -> Mapping[tuple[int, int], float]:
    """A needed pair that goes wrong when its first is slow → by how many ns; {} if none does."""
    slow = float(takes.interval.sum() + takes.latency.sum()) * 4
    for source in dict.fromkeys(run.needed[:, 0].tolist()):
        sinks = run.needed[run.needed[:, 0] == source, 1]
        latency = takes.latency[:, None].copy()
        latency[source] += slow
        start, end = _starts(run, takes.interval[:, None], latency)
        early = end[source, 0] - start[sinks, 0]
        if early.max() > 0:
            worst = int(early.argmax())
            return {(source, int(sinks[worst])): float(early[worst])}
    return {}


def orders_everything(graph: TokenGraph, plan: AsyncPlan) -> bool:
    """Whether the waits of the plan order every kept edge and every reuse, and none waits for ever.

    Every instance is followed; what the plan's own proof may have shown for further iterations by
    repetition is looked at one by one here.
    """
    nests = Nests(graph.kernel, plan.queues)
    run = Run(nests)
    needs = counted(nests, all_needs(graph.kernel, graph.edges, plan.slots))
    waits = [
        Counted(
            Need(wait.op, wait.after, wait.distance, "", ""), wait.queue, wait.count,
            values_of(nests, wait.op, wait.distance, wait.count),
        )
        for wait in plan.waits
    ]  # fmt: skip
    return not run.waits_for_itself(waits) and run.is_covered(needs, waits)
