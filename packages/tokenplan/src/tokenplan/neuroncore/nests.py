"""Loops around operations as numbers: iterations in order, and completions counted on a queue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

import numpy as np

from neuroncore.program import Affine
from tokenplan.kernel.model import Kernel, Loop, Node, Op


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
    """The iterations that are certainly between j and all that come up to j - distance.

    `distance` is not negative. Where a component carries into the loop around it, everything of the
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


class Nests:
    """A kernel's operations in the order of one run, on their queues."""

    def __init__(self, kernel: Kernel, queue: Mapping[str, str]) -> None:
        self.kernel, self.queue = kernel, queue
        self.loops = kernel.loops()
        self.ops = [op for op in kernel.ops() if self.num_iterations(op)]
        """Operations that are executed at all, in program order."""
        self.by_id = {op.id: op for op in self.ops}
        self.sizes: dict[str, Counter[str]] = {}
        """Loop → completions of one iteration, by queue."""
        self.ahead: dict[str, tuple[int, ...]] = {}
        """Operation → completions on its queue in each block around it, before it."""
        self._count(kernel.body, ())

    def _count(self, body: Sequence[Node], outer: tuple[Counter[str], ...]) -> Counter[str]:
        """Completions of one pass through `body`, by queue."""
        here: Counter[str] = Counter()
        for node in body:
            if isinstance(node, Op):
                name = self.queue[node.id]
                self.ahead[node.id] = tuple(block[name] for block in (*outer, here))
                here[name] += 1
                continue
            self.sizes[node.id] = each = self._count(node.body, (*outer, here.copy()))
            for name, number in each.items():
                here[name] += node.trips * number
        return here

    def trips(self, loops: Sequence[str]) -> list[int]:
        return [self.loops[loop].trips for loop in loops]

    def num_iterations(self, op: Op) -> int:
        return prod(self.trips(op.loops))

    def iterations(self, op: Op) -> np.ndarray:
        """Every iteration of the operation's loops in order, one a row."""
        trips = self.trips(op.loops)
        return np.indices(trips, np.int64).reshape(len(trips), prod(trips)).T

    def sequence(self) -> Iterator[int]:
        """The numbers (in `ops`) of the operations of one run, in program order."""
        numbers = {op.id: number for number, op in enumerate(self.ops)}

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
        name = self.queue[op.id]
        each = [self.sizes[loop][name] for loop in op.loops]
        last = [n - 1 for n in self.trips(op.loops)]
        inner = sum(number * most for number, most in zip(each[depth:], last[depth:], strict=True))
        outer = zip(op.loops[:depth], each[:depth], strict=True)
        terms = tuple(sorted((loop, number) for loop, number in outer if number))
        return Affine(1 + sum(self.ahead[op.id]) + inner, terms)
