"""Strides of C order, and of reshapes without a copy."""

from __future__ import annotations

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


def reshaped(shape: Shape, strides: tuple[int, ...], new: Shape) -> tuple[int, ...] | None:
    """The strides of a reshape that is a view, or None where NumPy has to copy."""
    if not prod(shape):
        return contiguous(new)
    runs = _runs(shape, strides)
    found: list[int] = []
    extent, stride = 1, 0
    for size in reversed(new):
        if extent == 1 and size > 1:
            extent, stride = runs.pop()
        if extent % size:
            return None
        found.append(stride if size > 1 else 0)
        extent, stride = extent // size, stride * size
    return tuple(reversed(found))


def _runs(shape: Shape, strides: tuple[int, ...]) -> list[tuple[int, int]]:
    """(elements, stride) of the runs that one stride describes, slowest first."""
    runs: list[tuple[int, int]] = []
    for size, stride in zip(shape, strides, strict=True):
        if runs and size > 1 and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        elif size > 1:
            runs.append((size, stride))
    return runs
