"""What a plan's JSON orders, instance by instance, as the plan format says it; no clocks."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

from packages.tokenplan.tests.brute_force import Instance, instances

from tokenplan.kernel.model import Kernel, Loop, Mode, Node, shared_loops

Json = dict[str, Any]
ENGINES = ("vector", "scalar", "gpsimd", "dma", "dma")


def waited_for(kernel: Kernel, plan: Json, run: list[Instance], at: int) -> Iterator[int]:
    """The instances whose completion instance `at` waits for."""
    loops = kernel.loops()
    ops = {op.id: op for op in kernel.ops()}
    one = run[at]
    for wait in plan["waits"]:
        if wait["op"] != one.op.id:
            continue
        shared = shared_loops(one.op, ops[wait["after"]])
        target = {n: one.at[n] - d for n, d in zip(shared, wait["distance"], strict=True)}
        number = 0
        for name in shared:
            number = number * loops[name].trips + target[name]
        if number < 0:
            continue
        terms = wait["count"]["terms"].items()
        count = wait["count"]["constant"] + sum(c * target[name] for name, c in terms)
        same = [n for n, other in enumerate(run) if plan["queues"][other.op.id] == wait["queue"]]
        yield same[count - 1]


def before(kernel: Kernel, plan: Json) -> list[int]:
    """Per instance, a bit for each that has certainly completed when it starts.

    Raises AssertionError for a wait for what comes later in program order.
    """
    run, started, completed = instances(kernel), [], []
    last: dict[str, int] = {}
    for at, one in enumerate(run):
        queue = plan["queues"][one.op.id]
        ahead = last.get(queue)
        known = started[ahead] if ahead is not None else 0
        for other in waited_for(kernel, plan, run, at):
            assert other < at
            known |= completed[other]
        started.append(known)
        done = known | 1 << at | (completed[ahead] if ahead is not None else 0)
        completed.append(done)
        last[queue] = at
    return started


def conflicts(kernel: Kernel, plan: Json) -> Iterator[tuple[int, int]]:
    """Pairs of instances on different queues that share a byte and do not commute, with slots."""
    run, queues = instances(kernel), plan["queues"]
    users: dict[tuple[str, int], list[tuple[int, Mode, set[int]]]] = {}
    for number, one in enumerate(run):
        for (buffer, scope), modes in one.touched.items():
            place = _place(kernel, plan, buffer, scope)
            users.setdefault((buffer, place), []).extend(
                (number, mode, found) for mode, found in modes.items()
            )
    for each in users.values():
        for (a, how, some), (b, mode, others) in combinations(each, 2):
            unordered = a != b and queues[run[a].op.id] != queues[run[b].op.id]
            if (
                unordered
                and (how is not mode or mode is Mode.write)
                and not some.isdisjoint(others)
            ):
                yield a, b


def _place(kernel: Kernel, plan: Json, buffer: str, scope: tuple[int, ...]) -> int:
    """Which instance of its buffer lies where this one does."""
    loops, count = kernel.loops(), 0
    for name, at in zip(kernel.buffers[buffer].scope, scope, strict=True):
        count = count * loops[name].trips + at
    return count % plan["slots"].get(buffer, count + 1)


def races(
    kernel: Kernel, plan: Json, pairs: Iterable[tuple[int, int]] | None = None
) -> list[tuple[int, int]]:
    """Conflicting pairs (None: pairs of the plan) that nothing orders."""
    known = before(kernel, plan)
    every = conflicts(kernel, plan) if pairs is None else pairs
    return [(a, b) for a, b in every if not known[b] >> a & 1]


def on_engines(kernel: Kernel, seed: int) -> Kernel:
    """The kernel with its operations on random engines."""
    rng = random.Random(seed)

    def dealt(node: Node) -> Node:
        if isinstance(node, Loop):
            return replace(node, body=tuple(map(dealt, node.body)))
        return replace(node, engine=rng.choice(ENGINES))

    return replace(kernel, body=tuple(map(dealt, kernel.body)))


def repeated(kernel: Kernel, times: int) -> Kernel:
    """The kernel over and over on the same tensors, with new tensors of its loops each time."""

    def inside(node: Node) -> Node:
        if isinstance(node, Loop):
            return replace(node, body=tuple(map(inside, node.body)))
        return replace(node, loops=("again", *node.loops))

    buffers = {
        name: replace(b, scope=("again", *b.scope)) if b.scope else b
        for name, b in kernel.buffers.items()
    }
    body = (Loop("again", "again", times, 0, 1, tuple(map(inside, kernel.body))),)
    return replace(kernel, buffers=buffers, body=body)
