"""Which bytes accesses touch, as sets of atoms: bytes that the same accesses touch are one atom."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tokenplan.checker.errors import TooBigError
from tokenplan.checker.records import Access

MOST_RUNS = 1 << 22
"""Runs of bytes of all different footprints of a buffer together."""
_SALT = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Atoms:
    """The bytes of a buffer, parted so that every footprint is a union of parts."""

    of_footprint: tuple[tuple[int, ...], ...]
    first_byte: np.ndarray
    """(atoms,): the lowest byte of each."""
    num_bytes: np.ndarray
    """(atoms,)."""


def runs(access: Access) -> np.ndarray:
    """(n, 2): the disjoint intervals [first, last) of bytes, from offset 0, in order."""
    if 0 in access.shape:
        return np.zeros((0, 2), np.int64)
    width, dims = access.width, []
    for extent, stride in sorted(zip(access.shape, access.strides, strict=True), key=_by_stride):
        if stride == width:  # goes on where the last one ended
            width *= extent
        elif extent > 1:
            dims.append((extent, stride))
    starts = np.zeros(1, np.int64)
    for extent, stride in dims:
        if len(starts) * extent > MOST_RUNS:
            raise TooBigError(f"an access to {access.buffer} has more than {MOST_RUNS} runs")
        steps = np.arange(extent, dtype=np.int64) * stride
        starts = np.unique((starts[:, None] + steps[None, :]).ravel())
    return _merged(starts, width)


def footprint(access: Access, plain: np.ndarray, offset: int) -> np.ndarray:
    """(n, 2): the intervals of an access at this offset; `plain` are its `runs`."""
    moved = plain + offset
    if access.swizzle is None:
        return moved
    total = int((moved[:, 1] - moved[:, 0]).sum())
    if total > MOST_RUNS:
        raise TooBigError(f"a swizzled access to {access.buffer} has more than {MOST_RUNS} bytes")
    every = [np.arange(first, last) for first, last in moved.tolist()]
    found = np.sort(access.swizzle(np.concatenate([moved[:0, 0], *every])))
    return _merged(found, 1) if len(found) else moved


def _by_stride(dim: tuple[int, int]) -> tuple[int, int]:
    return abs(dim[1]), dim[0]


def _merged(starts: np.ndarray, width: int) -> np.ndarray:
    """Intervals of this width from sorted starts, adjacent ones merged."""
    fresh = np.flatnonzero(np.diff(starts) > width) + 1
    first = starts[np.concatenate(([0], fresh))]
    last = starts[np.concatenate((fresh - 1, [len(starts) - 1]))] + width
    return np.stack((first, last), 1)


def atoms(footprints: list[np.ndarray]) -> Atoms:
    """The atoms of these footprints, each the (n, 2) disjoint sorted runs of an access."""
    total = sum(map(len, footprints))
    if total > MOST_RUNS:
        raise TooBigError(f"accesses to one buffer have {total} runs, more than {MOST_RUNS}")
    owner = np.repeat(np.arange(len(footprints)), [len(f) for f in footprints])
    every = np.concatenate([np.zeros((0, 2), np.int64), *footprints])
    cuts = np.unique(every)
    left, right = np.searchsorted(cuts, every[:, 0]), np.searchsorted(cuts, every[:, 1])
    part = _parts(owner, left, right, len(cuts), len(footprints))
    count = int(part.max(initial=-1)) + 1
    lengths = np.diff(cuts, append=cuts[-1:])
    first = np.full(count, np.iinfo(np.int64).max)
    covered = part >= 0
    np.minimum.at(first, part[covered], cuts[covered])
    size = np.zeros(count, np.int64)
    np.add.at(size, part[covered], lengths[covered])
    bounds = np.searchsorted(owner, np.arange(len(footprints) + 1))
    members = []
    for begin, end in pairwise(bounds):
        pieces = [part[a:b] for a, b in zip(left[begin:end], right[begin:end], strict=True)]
        found = np.unique(np.concatenate([part[:0], *pieces]))
        extent = int((every[begin:end, 1] - every[begin:end, 0]).sum())
        assert int(size[found].sum()) == extent, "atoms mix bytes that differ"
        members.append(tuple(map(int, found)))
    return Atoms(tuple(members), first, size)


def _parts(
    owner: np.ndarray, left: np.ndarray, right: np.ndarray, segments: int, owners: int
) -> np.ndarray:
    """(segments,): the atom of each segment, -1 where nothing touches it.

    A segment's signature is the sum of two random numbers of every footprint that covers it; that
    no two different covers had the same is asserted by the caller.
    """
    random = np.random.default_rng(_SALT).integers(1, 1 << 63, (2, owners), np.uint64)
    signature = np.zeros((2, segments + 1), np.uint64)
    for row, numbers in zip(signature, random, strict=True):
        np.add.at(row, left, numbers[owner])
        np.subtract.at(row, right, numbers[owner])
        np.cumsum(row, out=row)
    number = np.zeros(segments + 1, np.int64)
    np.add.at(number, left, 1)
    np.subtract.at(number, right, 1)
    covered = np.cumsum(number)[:segments] > 0
    part = np.full(segments, -1, np.int64)
    _, inverse = np.unique(signature[:, :segments][:, covered], axis=1, return_inverse=True)
    part[covered] = inverse.ravel()
    return part
