"""Strides of C order, and of reshapes without a copy."""

from __future__ import annotations

from math import prod

from neuroncore.layout import Layout
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
    try:
        found = Layout.of(shape, strides).reshape(new).dims
    except ValueError:
        return None
    if any(len(factors) > 1 for factors in found):
        return None
    return tuple(factors[0][1] if factors else 0 for factors in found)
