"""Waits for completion counters: what an operation waits for, in numbers of one run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

import numpy as np

from neuroncore.program import Affine
from tokenplan.neuroncore.needs import Need
from tokenplan.neuroncore.nests import Nests


@dataclass(frozen=True, slots=True)
class Counted:
    """A need between queues as a wait for the counter of one of them.

    `values[n]` is the number of completions on `queue` that the n-th instance of `op` waits for, 0
    where what it would wait for is before the first iteration.
    """

    need: Need
    queue: str
    count: Affine
    values: np.ndarray = field(compare=False, repr=False)


def counted(nests: Nests, needs: Iterable[Need]) -> list[Counted]:
    """The needs between different queues; queues complete in order, so others hold anyway."""
    queue = nests.queue
    return [count(nests, need) for need in needs if queue[need.op] != queue[need.after]]


def count(nests: Nests, need: Need) -> Counted:
    """The need with the numbers of completions that it requires."""
    after = nests.by_id[need.after]
    affine = nests.completions(after, len(need.distance))
    values = values_of(nests, need.op, need.distance, affine)
    return Counted(need, nests.queue[after.id], affine, values)


def values_of(nests: Nests, op: str, distance: tuple[int, ...], affine: Affine) -> np.ndarray:
    """`affine` at `distance` before each iteration of `op`; 0 before the first iteration."""
    depth = len(distance)
    loops = nests.by_id[op].loops[:depth]
    back = nests.iterations(nests.by_id[op])[:, :depth] - np.array(distance, np.int64)
    trips = nests.trips(loops)
    steps = np.array([prod(trips[d + 1 :]) for d in range(depth)], np.int64)
    each = dict(affine.terms)
    factors = np.array([each.get(loop, 0) for loop in loops], np.int64)
    return np.where(back @ steps >= 0, affine.constant + back @ factors, 0)
