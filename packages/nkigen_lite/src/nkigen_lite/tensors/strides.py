"""How elements lie one after the other: strides of C order, of reshapes without a copy."""

from __future__ import annotations

from itertools import pairwise
from math import prod

from nkigen_lite.tensors.spec import Shape


def contiguous(shape: Shape) -> tuple[int, ...]:
    """Element strides in C order."""
    return tuple(prod(shape[d + 1 :]) for d in range(len(shape)))


def strided(shape: Shape, strides: tuple[int, ...]) -> bool:
    """Whether these are the strides of C order, where they matter."""
    expected = contiguous(shape)
    steps = zip(shape, strides, expected, strict=True)
    return not prod(shape) or all(n == 1 or s == e for n, s, e in steps)


def in_order(shape: Shape, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Element strides where `axes` are in the order of memory, slowest first."""
    found = dict(zip(axes, contiguous(tuple(shape[d] for d in axes)), strict=True))
    return tuple(found[d] for d in range(len(shape)))


def _continue(axes: list[tuple[int, int]]) -> bool:
    """Whether axes (size, stride) are neighbours in memory, each in the steps of the next."""
    return all(outer == n * inner for (_, outer), (n, inner) in pairwise(axes))


def reshaped(shape: Shape, strides: tuple[int, ...], new: Shape) -> tuple[int, ...] | None:
    """The strides of a reshape that is a view, or None where NumPy has to copy."""
    if not prod(shape):
        return contiguous(new)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    result: list[int] = []
    rest = list(new)
    while rest:
        if rest[0] == 1:
            result.append(0)
            rest.pop(0)
            continue
        # Axes of both sides, until they hold the same number of elements.
        ours, theirs = [old.pop(0)], [rest.pop(0)]
        while (have := prod(n for n, _ in ours)) != prod(theirs):
            if have < prod(theirs):
                ours.append(old.pop(0))
            else:
                theirs.append(rest.pop(0))
        if not _continue(ours):
            return None
        result += [ours[-1][1] * prod(theirs[d + 1 :]) for d in range(len(theirs))]
    return tuple(result)
