"""Accesses that are swizzled in two ways: every byte of every iteration, one by one."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from tokenplan.footprints.integer_sets import ExhaustedError
from tokenplan.kernel.model import Access
from tokenplan.rules.pair import Conflict, Pair


def nearest(pair: Pair, outer: int, budget: int) -> Conflict | None:
    """The least distance with a later iteration of shared loop `outer`, those around it being the
    same (outer = number of shared loops: all the same), with a byte that both access.

    Raises ExhaustedError where the two access more than `budget` bytes.
    """
    ends = ((pair.a, pair.source.loops), (pair.b, pair.sink.loops))
    trips = {loop: high + 1 for loop, (_, high) in pair.trips.items()}
    size = sum(num_bytes(access) * prod(trips[n] for n in loops) for access, loops in ends)
    if size > budget:
        raise ExhaustedError
    (byte, before), (other, after) = (_bytes(*end, trips) for end in ends)
    same, moving = pair.shared[:outer], pair.shared[outer:]
    weights = _weights([trips[loop] for loop in moving])
    least = _least([trips[loop] for loop in moving], weights)
    start, end = (
        sum((w * at[loop] for loop, w in zip(moving, weights, strict=True)), np.zeros(1, np.int64))
        for at in (before, after)
    )
    span = 2 * sum(w * trips[loop] for loop, w in zip(moving, weights, strict=True)) + least + 1
    if span * (int(max(byte.max(), other.max())) + 1) * prod(trips[n] for n in same) >= 2**62:
        raise ExhaustedError
    for loop in same:
        byte, other = (b * trips[loop] + at[loop] for b, at in ((byte, before), (other, after)))
    codes = other * span + end
    order = np.argsort(codes, kind="stable")
    place = np.searchsorted(codes[order], byte * span + start + least)
    found = order[np.minimum(place, len(order) - 1)]
    overlaps = (place < len(order)) & (other[found] == byte)
    if not overlaps.any():
        return None
    distances = np.where(overlaps, codes[found] - byte * span - start, span)
    one = int(np.argmin(distances))
    return _conflict(pair, before, one, after, int(found[one]))


def num_bytes(access: Access) -> int:
    """The number of bytes that an access covers in one iteration, counted twice where it accesses
    them twice.
    """
    return prod(access.shape) * access.width


def _bytes(
    access: Access, loops: tuple[str, ...], trips: dict[str, int]
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Every byte that is accessed, and the iterations of each loop in which it is."""
    steps = dict(access.offset.terms)
    sizes = (*(trips[loop] for loop in loops), *access.shape, access.width)
    moves = (*(steps.get(loop, 0) for loop in loops), *access.strides, 1)
    index = np.indices(sizes, np.int64).reshape(len(sizes), -1)
    byte = access.offset.constant + np.array(moves, np.int64) @ index
    return access.swizzle(byte), dict(zip(loops, index, strict=False))


def _weights(trips: list[int]) -> list[int]:
    """One per loop: distances, weighed so and added up, compare as they do as vectors."""
    return [prod(2 * count + 1 for count in trips[at + 1 :]) for at in range(len(trips))]


def _least(trips: list[int], weights: list[int]) -> int:
    """The least weighed distance that is at least one iteration of the first of the loops."""
    if not trips:
        return 0
    return weights[0] - sum((n - 1) * w for n, w in zip(trips[1:], weights[1:], strict=True))


def _conflict(
    pair: Pair,
    before: dict[str, np.ndarray],
    one: int,
    after: dict[str, np.ndarray],
    other: int,
) -> Conflict:
    source = {loop: int(at[one]) for loop, at in before.items()}
    sink = {loop: int(at[other]) for loop, at in after.items()}
    distance = tuple(sink[loop] - source[loop] for loop in pair.shared)
    both = np.intersect1d(bytes_at(pair.a, source), bytes_at(pair.b, sink))
    return Conflict(distance, int(both[0]), source, sink)


def bytes_at(access: Access, at: Mapping[str, int]) -> np.ndarray:
    """The bytes of an access in these iterations."""
    sizes = (*access.shape, access.width)
    index = np.indices(sizes, np.int64).reshape(len(sizes), -1)
    byte = access.offset.value(at) + np.array((*access.strides, 1), np.int64) @ index
    return access.swizzle(byte)
