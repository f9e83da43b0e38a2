"""A layout taken apart into index bits, which a swizzle mixes, and digits above, which it does not.

With w the width of the swizzle, address = 2**w · (high) + swizzle(low), where low is the XOR of one
column per index bit and of a constant, and high an ordinary sum. For this, steps below 2**w must be
powers of two in number and must not carry: that is what "restricted" means here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from neuroncore.layout._factors import Factors

if TYPE_CHECKING:
    from neuroncore.layout.descriptor import Layout


@dataclass(frozen=True, slots=True)
class IndexBit:
    """One bit of the index of a dimension: its step before the swizzle; what it flips after it."""

    dim: int
    bit: int
    step: int
    flips: int


@dataclass(frozen=True, slots=True)
class Parts:
    """Index bits in ascending order, and per dimension the factors above its bits."""

    width: int
    bits: tuple[IndexBit, ...]
    above: tuple[Factors, ...]
    start: int
    """The swizzled low part of the offset."""
    high: int
    """The offset without its low part."""


def take_apart(layout: Layout) -> Parts:
    """The parts of `layout`; raises ValueError where its swizzle is not restricted as above."""
    width = layout.swizzle.width
    low = (1 << width) - 1
    bits: list[IndexBit] = []
    above: list[Factors] = []
    taken, owner = layout.offset & low, "the offset"
    owners = {taken: owner}
    for dim, factors in enumerate(layout.dims):
        steps, rest = _split(factors, width, dim)
        above.append(rest)
        for bit, step in enumerate(steps):
            carried = step & low & taken
            if carried:
                _refuse_carry(dim, bit, carried, owners)
            taken |= step & low
            owners[step & low] = f"bit {bit} of dimension {dim}"
            bits.append(IndexBit(dim, bit, step, layout.swizzle.linear(step & low)))
    start = layout.swizzle(layout.offset & low)
    return Parts(width, tuple(bits), tuple(above), start, layout.offset & ~low)


def _split(factors: Factors, width: int, dim: int) -> tuple[list[int], Factors]:
    """The steps of a dimension's low index bits, lowest first, and the factors above them.

    All bits up to the last one whose step is not a multiple of 2**width.
    """
    digits = list(_at_periods(factors, width))  # fastest first
    low = [at for at, (_, stride) in enumerate(digits) if stride % (1 << width)]
    if not low:
        return [], factors
    steps: list[int] = []
    for size, stride in digits[: low[-1] + 1]:
        if size & size - 1:
            raise ValueError(
                f"dimension {dim} has {size} steps of {stride} below bit {width}, the width of "
                "the swizzle; expected a power of two of them there (tiles and slices aligned to "
                "powers of two)"
            )
        steps += [stride << bit for bit in range(size.bit_length() - 1)]
    return steps, tuple(reversed(digits[low[-1] + 1 :]))


def _at_periods(factors: Factors, width: int) -> Iterator[tuple[int, int]]:
    """Factors cut where their step becomes a multiple of 2**width, fastest first."""
    for size, stride in reversed(factors):
        period = (1 << width) // gcd(stride, 1 << width)
        if 1 < period < size and size % period == 0:
            yield period, stride
            yield size // period, stride * period
        else:
            yield size, stride


def _refuse_carry(dim: int, bit: int, carried: int, owners: dict[int, str]) -> None:
    other = next(name for column, name in owners.items() if column & carried)
    raise ValueError(
        f"bit {bit} of dimension {dim} and {other} both step over address bit "
        f"{carried.bit_length() - 1}, which the swizzle uses; expected steps that share no address "
        "bit there"
    )


def from_parts(dims: int, bits: list[tuple[int, int]], above: tuple[Factors, ...]) -> list[Factors]:
    """Factors per dimension, from (dimension, step) of each bit, lowest first, and those above."""
    steps: list[list[tuple[int, int]]] = [[] for _ in range(dims)]
    for dim, step in bits:
        steps[dim].insert(0, (2, step))
    return [(*above[dim], *steps[dim]) for dim in range(dims)]
