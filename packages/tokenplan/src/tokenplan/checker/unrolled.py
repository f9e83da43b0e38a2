"""Every instance of every operation at the concrete trip counts, in program order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tokenplan.checker.errors import TooBigError
from tokenplan.checker.records import Loop, Op, PlanFile

LARGEST = 50_000
"""Instances: their orderings are bitsets of as many bits each."""


@dataclass(frozen=True, slots=True)
class Unrolled:
    """Instances 0 … N-1 in program order; and, within each operation, by themselves."""

    file: PlanFile
    ops: tuple[Op, ...]
    index: Mapping[str, int]
    """Operation id -> its place in `ops`."""
    trips: Mapping[str, int]
    op: np.ndarray
    """(N,): which operation."""
    number: np.ndarray
    """(N,): which of the operation's instances, in program order."""
    iterations: tuple[np.ndarray, ...]
    """Per operation (instances, loops around it)."""
    positions: tuple[np.ndarray, ...]
    """Per operation (instances,): their positions among all."""

    @property
    def size(self) -> int:
        return len(self.op)

    def columns(self, op: int) -> dict[str, np.ndarray]:
        """The iterations of every instance of an operation, by loop."""
        loops = self.ops[op].loops
        return {loop: self.iterations[op][:, n] for n, loop in enumerate(loops)}

    def where(self, instance: int) -> dict[str, int]:
        """The iterations of one instance."""
        op, number = int(self.op[instance]), int(self.number[instance])
        return {name: int(column[number]) for name, column in self.columns(op).items()}

    def linear(self, op: int, depth: int) -> np.ndarray:
        """(instances,): the number of the iteration of the outermost `depth` loops."""
        loops = self.ops[op].loops[:depth]
        sizes = [self.trips[loop] for loop in loops]
        return linear(self.iterations[op][:, :depth], sizes)


def linear(iterations: np.ndarray, sizes: list[int]) -> np.ndarray:
    """Iteration vectors (n, loops) as numbers that count iterations of the whole nest."""
    number = np.zeros(len(iterations), np.int64)
    for column, size in enumerate(sizes):
        number = number * size + iterations[:, column]
    return number


def unroll(file: PlanFile, trips: Mapping[str, int] | None = None) -> Unrolled:
    """The instances of a plan file; `trips` replaces trip counts of loops by smaller ones.

    Raises TooBigError beyond LARGEST instances.
    """
    counts = {**file.trips(), **(trips or {})}
    total = _count(file.body, counts)
    if total > LARGEST:
        loops = ", ".join(f"{loop}={count}" for loop, count in counts.items() if count > 2)
        raise TooBigError(
            f"{file.kernel} has {total} instances at its sizes, more than the {LARGEST} that are "
            f"unrolled: check it at reduced trip counts with --trips (its loops: {loops})"
        )
    ops = tuple(file.ops().values())
    index = {op.id: n for n, op in enumerate(ops)}
    depth = max((len(op.loops) for op in ops), default=0)
    which, vectors = _unroll(file.body, counts, index, 0, depth)
    positions = tuple(np.flatnonzero(which == n) for n in range(len(ops)))
    number = np.zeros(len(which), np.int64)
    for at in positions:
        number[at] = np.arange(len(at))
    iterations = tuple(vectors[at, : len(op.loops)] for op, at in zip(ops, positions, strict=True))
    return Unrolled(file, ops, index, counts, which, number, iterations, positions)


def _count(body: tuple[Op | Loop, ...], trips: Mapping[str, int]) -> int:
    return sum(
        trips[node.id] * _count(node.body, trips) if isinstance(node, Loop) else 1 for node in body
    )


def _unroll(
    body: tuple[Op | Loop, ...], trips: Mapping[str, int], index: Mapping[str, int], level: int,
    depth: int,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Operation (n,) and iteration vector (n, depth) of what one execution of `body` does."""
    which, vectors = [np.zeros(0, np.int64)], [np.zeros((0, depth), np.int64)]
    for node in body:
        if isinstance(node, Op):
            which.append(np.array([index[node.id]]))
            vectors.append(np.zeros((1, depth), np.int64))
            continue
        inner, within = _unroll(node.body, trips, index, level + 1, depth)
        count = trips[node.id]
        if not len(inner):
            continue
        repeated = np.tile(within, (count, 1))
        repeated[:, level] = np.repeat(np.arange(count), len(inner))
        which.append(np.tile(inner, count))
        vectors.append(repeated)
    return np.concatenate(which), np.concatenate(vectors)
