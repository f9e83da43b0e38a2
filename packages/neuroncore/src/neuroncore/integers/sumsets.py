"""Sets of integers Σ strides[d] · i[d] + r with 0 <= i[d] < shape[d] and 0 <= r < run.

All bytes that a strided access names are such a set, and so are all distances between the bytes of
two accesses: two accesses share a byte where one number is an element of one set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Sumset:
    """Dimensions by falling stride, each longer than `run`; all of them counted from 0.

    `spans[d]` is the length of the interval that dimensions d, d+1, … fill (the last is `run`),
    `gcds[d]` the greatest common divisor of their strides.
    """

    shape: Sizes
    strides: Sizes
    run: int
    spans: Sizes
    gcds: Sizes

    @property
    def is_nested(self) -> bool:
        """Whether each step of a dimension is as long as what the faster ones fill."""
        return all(s >= span for s, span in zip(self.strides, self.spans[1:], strict=True))

    def contains(self, number: int, dim: int = 0) -> bool:
        """Whether `number` is a sum of elements of dimensions `dim`, `dim` + 1, …"""
        spans, strides = self.spans, self.strides
        if not 0 <= number < spans[dim]:
            return False
        faster = len(strides) - dim - 1
        if faster < 0:
            return True
        if number % self.gcds[dim] >= self.run:
            return False
        if faster == 0:
            return True
        stride = strides[dim]
        low = max(0, (number - spans[dim + 1]) // stride + 1)
        high = min(self.shape[dim] - 1, number // stride)
        if faster == 1 and high - low > 4:
            first, step = number - stride * low, strides[-1]
            return _any_below(self.run, first, -stride, step, high - low + 1)
        return any(self.contains(number - stride * i, dim + 1) for i in range(low, high + 1))

    def count(self) -> int:
        """The number of its elements."""
        if self.is_nested:
            count = self.run
            for size in self.shape:
                count *= size
            return count
        starts = np.zeros(1, np.int64)
        for size, stride in zip(self.shape, self.strides, strict=True):
            starts = np.unique(starts[:, None] + np.arange(size) * stride)
        return int(np.minimum(np.diff(starts), self.run).sum()) + self.run


@lru_cache(maxsize=1 << 14)
def sumset(shape: Sizes, strides: Sizes, run: int) -> tuple[int, Sumset]:
    """The set as its least element and a Sumset from 0; sizes are at least 1.

    Backward dimensions are reversed; dimensions that repeat or have one element are dropped, and
    dimensions that continue one another (or the run) are merged.
    """
    least, dims = 0, []
    for size, stride in zip(shape, strides, strict=True):
        if size != 1 and stride != 0:
            least += min(0, (size - 1) * stride)
            dims.append((abs(stride), size))
    kept: list[tuple[int, int]] = []
    for stride, size in sorted(dims):
        if stride <= run:
            run += (size - 1) * stride
        elif not _merged(kept, stride, size):
            kept.append((stride, size))
    kept.reverse()
    spans, gcds = [run], [0]
    for stride, size in reversed(kept):
        spans.append(spans[-1] + (size - 1) * stride)
        gcds.append(gcd(gcds[-1], stride))
    return least, Sumset(
        tuple(n for _, n in kept),
        tuple(s for s, _ in kept),
        run,
        tuple(reversed(spans)),
        tuple(reversed(gcds)),
    )


def _merged(kept: list[tuple[int, int]], stride: int, size: int) -> bool:
    """Extend a faster dimension whose steps `stride` continues; False where there is none."""
    for d, (inner, count) in enumerate(kept):
        if stride % inner == 0 and stride // inner <= count:
            kept[d] = (inner, count + stride // inner * (size - 1))
            return True
    return False


def _any_below(limit: int, first: int, step: int, modulus: int, count: int) -> bool:
    """Whether (first + step · i) mod modulus < limit for some 0 <= i < count.

    Counted as Σ ⌊x_i / modulus⌋ − ⌊(x_i − limit) / modulus⌋, in logarithmic time.
    """
    return _floor_sum(count, modulus, step, first) != _floor_sum(
        count, modulus, step, first - limit
    )


def _floor_sum(count: int, modulus: int, step: int, first: int) -> int:
    """Σ ⌊(step · i + first) / modulus⌋ for 0 <= i < count, as Euclid's algorithm goes."""
    total = 0
    while True:
        quotient, step = divmod(step, modulus)
        total += quotient * (count * (count - 1) // 2)
        quotient, first = divmod(first, modulus)
        total += quotient * count
        top = step * count + first
        if top < modulus:
            return total
        count, first = divmod(top, modulus)
        modulus, step = step, modulus
