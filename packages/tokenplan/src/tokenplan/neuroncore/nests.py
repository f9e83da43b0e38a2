"""Loops around operations as numbers: iterations in order, and completions counted on a queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

import numpy as np

from neuroncore.program import Affine
from tokenplan.model import Kernel, Loop, Node, Op


def num_instances(node: Node, queue: Mapping[str, str], name: str) -> int:
    """How many instances of operations in `node` the queue `name` executes."""
    if isinstance(node, Op):
        return int(queue[node.id] == name)
    return node.trips * sum(num_instances(inner, queue, name) for inner in node.body)


def with_trips(kernel: Kernel, most: Mapping[str, int]) -> Kernel:
    """The kernel with at most so many iterations of each outermost loop that is named."""

    def cut(node: Node) -> Node:
        if isinstance(node, Loop) and node.id in most:
            return replace(node, trips=min(node.trips, most[node.id]))
        return node

    return replace(kernel, body=tuple(cut(node) for node in kernel.body))


def linear(vector: Sequence[int], trips: Sequence[int]) -> int:
    """The number of an iteration, counted through all loops; of a distance, likewise."""
    number = 0
    for count, size in zip(vector, trips, strict=True):
        number = number * size + count
    return number


def least_linear(distance: tuple[int, ...], trips: Sequence[int]) -> int:
    """The iterations that certainly lie between j and all that come up to j - distance.

    `distance` is not negative. Where a component borrows from the loop around, everything of the
    iteration before is meant, which is nearer than `linear(distance)`.
    """
    nearest = linear(distance, trips)
    edges = [
        sorted({0, max(0, min(d, n) - 1), min(d, n - 1), n - 1})
        for d, n in zip(distance, trips, strict=True)
    ]
    for at in product(*edges):
        target = [j - d for j, d in zip(at, distance, strict=True)]
        short = next((n for n, value in enumerate(target) if value < 0), None)
        if short is None:
            continue
        before = linear(target[:short], trips[:short])
        if before > 0:
            last = before * prod(trips[short:]) - 1
            nearest = min(nearest, linear(at, trips) - last)
    return nearest


@dataclass(frozen=True, slots=True)
class Nests:
    """A kernel's operations in the order of one run, on their queues."""

    kernel: Kernel
    queue: Mapping[str, str]

    def ops(self) -> list[Op]:
        """Operations that are executed at all, in program order."""
        return [op for op in self.kernel.ops() if self.num_iterations(op)]

    def trips(self, loops: Sequence[str]) -> list[int]:
        found = self.kernel.loops()
        return [found[loop].trips for loop in loops]

    def num_iterations(self, op: Op) -> int:
        return prod(self.trips(op.loops))

    def iterations(self, op: Op) -> np.ndarray:
        """Every iteration of the operation's loops in order, one a row."""
        trips = self.trips(op.loops)
        return np.indices(trips, np.int64).reshape(len(trips), prod(trips)).T

    def sequence(self) -> Iterator[int]:
        """The numbers (in `ops`) of the operations of one run, in program order."""
        numbers = {op.id: number for number, op in enumerate(self.ops())}

        def run(body: Sequence[Node]) -> Iterator[int]:
            for node in body:
                if isinstance(node, Op):
                    yield numbers[node.id]
                elif node.trips:
                    once = list(run(node.body))
                    for _ in range(node.trips):
                        yield from once

        return run(self.kernel.body)

    def completions(self, op: Op, depth: int) -> Affine:
        """Completions on the queue of `op` up to its last instance in given outer iterations.

        Affine in the iterations of the outermost `depth` loops around it.
        """
        name, body, found = self.queue[op.id], self.kernel.body, Affine(1)
        for level, loop_id in enumerate((*op.loops, None)):
            before, node = _until(body, loop_id, op.id)
            found += sum(num_instances(each, self.queue, name) for each in before)
            if not isinstance(node, Loop):
                break
            body = node.body
            each = sum(num_instances(inner, self.queue, name) for inner in body)
            outer = Affine.variable(node.id, each)
            found += outer if level < depth else Affine((node.trips - 1) * each)
        return found


def _until(body: Sequence[Node], loop: str | None, op: str) -> tuple[Sequence[Node], Node]:
    """What stands before the loop (None: the operation) in a block, and it."""
    wanted = loop or op
    at = next(
        n for n, node in enumerate(body)
        if node.id == wanted and isinstance(node, Op) is (loop is None)
    )  # fmt: skip
    return body[:at], body[at]
