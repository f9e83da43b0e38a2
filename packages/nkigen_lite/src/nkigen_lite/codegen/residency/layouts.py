"""The layout of an array of HBM in SBUF, and what accesses to the array are there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, product
from math import prod

from neuroncore.program import Access, Affine
from neuroncore.records import record
from neuroncore.targets import QUADRANT

MOST_PARTS = 8
"""Transfers that one DMA between partitions becomes, at most."""

Ranges = dict[str, range]
"""The values of the loop variables in scope."""


@record
class Factor:
    """A part of an axis: `count` places, `partitions` and `elements` from one to the next."""

    count: int
    partitions: int
    elements: int


@record
class Placed:
    """An access on chip: the first partition, the first element there, the factors of each axis."""

    partition: int
    offset: Affine
    axes: tuple[tuple[Factor, ...], ...]


@dataclass(frozen=True, slots=True)
class ResidentLayout:
    """Element e is in partition (e // run) % partitions, and run · (e // run // partitions) +
    e % run elements from its beginning."""

    run: int
    partitions: int
    size: int

    @property
    def row(self) -> int:
        """Elements of a partition."""
        return -(-self.size // (self.run * self.partitions)) * self.run

    def factors(self, count: int, stride: int) -> tuple[Factor, ...] | None:
        """An axis of `count` places `stride` outer; None where it is not regular on chip."""
        if count == 1:
            return ()
        if stride < 0:
            return None
        block = self.run * self.partitions
        if stride % block == 0:
            return (Factor(count, 0, stride // self.partitions),)
        if stride % self.run == 0:
            step = stride // self.run
            return self._cut(count, step, self.partitions, Factor(count, step, 0), block)
        return self._cut(count, stride, self.run, Factor(count, 0, stride), self.run)

    def _cut(
        self, count: int, step: int, room: int, factor: Factor, beyond: int
    ) -> tuple[Factor, ...] | None:
        """The axis, cut where it leaves the run or the partitions."""
        if (count - 1) * step < room:
            return (factor,)
        inner = room // step
        if not inner or room % step or count % inner:
            return None
        outer = self.factors(count // inner, beyond)
        return None if outer is None else (*outer, replace(factor, count=inner))

    def placed(self, access: Access, ranges: Ranges) -> Placed | None:
        """Where the elements of an access to the array are; None where no access reaches them."""
        axes = [self.factors(n, s) for n, s in zip(access.shape, access.strides, strict=True)]
        known, terms = [axis for axis in axes if axis is not None], self._terms(access, ranges)
        if access.indirect is not None or len(known) < len(axes) or terms is None:
            return None
        rest, within = divmod(access.offset.constant, self.run)
        outer, partition = divmod(rest, self.partitions)
        if not self._stays(partition, within, [*terms.values(), *chain.from_iterable(known)]):
            return None
        offset = Affine(outer * self.run + within)
        for variable, factor in terms.items():
            offset += Affine.variable(variable, factor.elements)
        return Placed(partition, offset, tuple(known))

    def _terms(self, access: Access, ranges: Ranges) -> dict[str, Factor] | None:
        """How far loop variables move the access in a partition; None where one leaves it."""
        found: dict[str, Factor] = {}
        for variable, step in access.offset.terms:
            values = ranges[variable]
            factors = self.factors(len(values), step)
            if values.start or values.step != 1 or factors is None or len(factors) > 1:
                return None
            if any(f.partitions for f in factors):
                return None
            found |= zip([variable], factors, strict=False)
        return found

    def _stays(self, partition: int, within: int, factors: list[Factor]) -> bool:
        """Whether no sum of the steps carries into the next partition or run."""
        down = sum((f.count - 1) * f.partitions for f in factors)
        along = sum((f.count - 1) * f.elements for f in factors if f.elements < self.run)
        return partition + down < self.partitions and within + along < self.run

    def direct(self, buffer: str, access: Access, ranges: Ranges) -> Access | None:
        """The access with the same axes, from partition 0 on; None where engines take no such."""
        found = self.placed(access, ranges)
        if found is None or found.partition or max(map(len, found.axes)) > 1:
            return None
        first, *rest = [axis[0] if axis else Factor(1, 1, 0) for axis in found.axes]
        moves = (first.partitions, first.elements) == (1, 0)
        if not moves or any(f.partitions for f in rest if f.count > 1):
            return None
        strides = (self.row, *(f.elements for f in rest))
        return Access(buffer, found.offset, access.shape, strides)

    def transfers(
        self, buffer: str, access: Access, other: Access, ranges: Ranges
    ) -> list[tuple[Access, Access]] | None:
        """(on chip, of the other side) of the DMAs that move the access; `other` has its shape."""
        found = self.placed(access, ranges)
        if found is None or access.shape != other.shape or other.indirect is not None:
            return None
        outer, inner = _separated(_steps(found, other))
        if not _may_start(found, outer, inner, other.strides[0]):
            return None
        shape, strides = _beside(other, inner)
        start = found.offset + found.partition * self.row
        mine = [Factor(1, 1, 0)] * (not (inner and inner[0].factor.partitions))
        mine += [s.factor for s in inner]
        sizes = tuple(f.count for f in mine)
        return [
            (
                Access(buffer, start + here, sizes, tuple(map(self._distance, mine))),
                replace(other, offset=other.offset + there, shape=shape, strides=strides),
            )
            for here, there in self._offsets(outer)
        ]

    def _distance(self, factor: Factor) -> int:
        return factor.partitions * self.row + factor.elements

    def _offsets(self, outer: list[Step]) -> Iterator[tuple[int, int]]:
        """(elements on chip, elements of the other side) of every transfer."""
        for places in product(*(range(s.factor.count) for s in outer)):
            yield (
                sum(n * self._distance(s.factor) for n, s in zip(places, outer, strict=True)),
                sum(n * s.other for n, s in zip(places, outer, strict=True)),
            )


@dataclass(frozen=True, slots=True)
class Step:
    """A factor of axis number `axis`, `other` elements from place to place on the other side."""

    axis: int
    factor: Factor
    other: int


def _steps(found: Placed, other: Access) -> list[Step]:
    """Every factor with its steps on both sides, outer ones first."""
    return [
        Step(number, factor, stride * prod(f.count for f in axis[place + 1 :]))
        for number, (axis, stride) in enumerate(zip(found.axes, other.strides, strict=True))
        for place, factor in enumerate(axis)
    ]


def _may_start(found: Placed, outer: list[Step], inner: list[Step], row: int) -> bool:
    """Whether few transfers do it, on both sides from partitions where an access may begin, to
    neighbours; `row` is from partition to partition on the other side."""
    starts = [found.partition, *(s.factor.partitions for s in outer)]
    starts += [s.other // (row or 1) for s in outer if s.axis == 0]
    few = prod(s.factor.count for s in outer) <= MOST_PARTS
    neighbours = all(s.factor.partitions <= 1 for s in inner)
    return few and neighbours and not any(start % QUADRANT for start in starts)


def _separated(steps: list[Step]) -> tuple[list[Step], list[Step]]:
    """The steps that are transfers of their own, and those inside of one: the longest that moves
    over partitions is the first of these."""
    down = [n for n, s in enumerate(steps) if s.factor.partitions]
    kept = max(down, key=lambda n: steps[n].factor.count, default=-1)
    outer = [n for n in range(len(steps)) if n < kept or (n in down and n != kept)]
    return [steps[n] for n in outer], [s for n, s in enumerate(steps) if n not in outer]


def _beside(other: Access, inner: list[Step]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of the other side in one transfer: its first axis stays the first."""
    dims = [(0, 1, other.strides[0])] * (not (inner and inner[0].axis == 0))
    for step in inner:
        axis, count, stride = dims[-1] if dims else (-1, 0, 0)
        if axis == step.axis and stride == step.other * step.factor.count:
            dims[-1] = (axis, count * step.factor.count, step.other)
        else:
            dims.append((step.axis, step.factor.count, step.other))
    return tuple(n for _, n, _ in dims), tuple(s for _, _, s in dims)
