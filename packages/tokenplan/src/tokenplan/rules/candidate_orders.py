"""Candidate orders of a kernel: program order, and from each iteration to later ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from neuroncore.effects import Footprint, footprint
from neuroncore.integers import Digit
from tokenplan.footprints import (
    Trips,
    Values,
    blurred,
    digits_of,
    linear,
    radices,
    values_of,
)
from tokenplan.graph.token_graph import Distance
from tokenplan.kernel.model import Access, Buffer, Kernel, Loop, Node, Op


@dataclass(frozen=True, eq=False)
class Part:
    """The accessed part of a buffer: the same one for all accesses to equal parts.

    `trips` are the trip counts of all loops.
    """

    access: Access
    """One of them; its mode and operand are its own."""
    buffer: Buffer
    trips: Trips
    radices: tuple[int, ...]
    """Of its buffer."""

    @cached_property
    def digits(self) -> tuple[Digit, ...] | None:
        """The access in rows, columns and so on of its buffer; None where it crosses them."""
        return digits_of(self.access, self.buffer, self.trips)

    @cached_property
    def reach(self) -> int:
        """No element that is accessed has this index or a greater one, counted in all the buffer;
        from 2^31 on the least such index."""
        if self.values is not None:
            most = self.values[0].end * self.values[0].radix
            if most <= 2**31 * self.buffer.itemsize:
                return -(-most // self.buffer.itemsize)
        low, high = linear(self.access).bounds(self.trips)
        return max(-(-high // self.buffer.itemsize), -low // self.buffer.itemsize)

    @cached_property
    def values(self) -> tuple[Values, ...] | None:
        """The values of each digit; None where they are too many to enumerate."""
        known = tuple([values_of(digit) for digit in self.digits or ()])
        few = tuple([values for values in known if values is not None])
        return few if len(few) == len(known) > 0 else None

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """First and one past the last row, column and so on that the bytes could be in, in any
        iteration and wherever a swizzle moves them."""
        if self.values is not None and not self.access.swizzle:
            return [(digit.first, digit.end) for digit in self.values]
        if self.digits is not None and not self.access.swizzle:
            return [digit.bounds(self.trips) for digit in self.digits]
        low, high = linear(blurred(self.access)).bounds(self.trips)
        found = []
        for radix in self.radices:
            first, last = low // radix, (high - 1) // radix
            found.append((first, last + 1))
            low, high = (low - first * radix, high - first * radix) if first == last else (0, radix)
        return [*found, (low, high)]

    @cached_property
    def is_box(self) -> bool:
        """Whether every iteration accesses all that is inside the bounds of any."""
        if self.access.swizzle or self.access.offset.terms:
            return False
        digits = self.values or self.digits
        return digits is not None and not any(digit.steps for digit in digits)

    @cached_property
    def at_zero(self) -> Footprint:
        """The bytes from offset 0 on, before any swizzle."""
        return footprint(0, self.access.shape, self.access.strides, self.access.width)


@dataclass(frozen=True, eq=False)
class Place:
    """An access and its position: `at` counts operations, `group` the outermost loop.

    Operations in no loop have a group of their own, -1.
    """

    at: int
    op: Op
    access: Access
    group: int
    part: Part

    @property
    def buffer(self) -> Buffer:
        """The buffer that it accesses."""
        return self.part.buffer

    @property
    def trips(self) -> Trips:
        """First and last iteration of every loop."""
        return self.part.trips

    def at_iteration(self, at: Mapping[str, int]) -> Footprint:
        """The bytes that it accesses in these iterations, before any swizzle."""
        return self.part.at_zero.moved(self.access.offset.value(at))


def places(kernel: Kernel) -> list[Place]:
    """Every access to at least one byte, in program order."""
    found, at = [], 0
    trips = {name: (0, loop.trips - 1) for name, loop in kernel.loops().items()}
    rows = {name: tuple(radices(buffer)) for name, buffer in kernel.buffers.items()}
    parts: dict[Hashable, Part] = {}
    for group, node in enumerate(kernel.body):
        inside = isinstance(node, Loop)
        for op in _ops(node):
            for access in op.accesses:
                if access.width > 0 and 0 not in access.shape:
                    key = _byte_facts(access)
                    part = parts.get(key)
                    if part is None:
                        buffer = access.buffer
                        part = Part(access, kernel.buffers[buffer], trips, rows[buffer])
                        parts[key] = part
                    found.append(Place(at, op, access, group if inside else -1, part))
            at += 1
    return found


def _byte_facts(access: Access) -> Hashable:
    """The facts that determine the bytes of an access, and how well they are known."""
    start = access.offset
    box = access.shape, access.strides, access.width
    return access.buffer, start.constant, start.terms, box, access.swizzle, access.opaque


def _ops(node: Node) -> Iterator[Op]:
    if isinstance(node, Op):
        yield node
        return
    for inner in node.body:
        yield from _ops(inner)


def count_pairs(found: Iterable[Place]) -> int:
    """Ordered pairs of accesses among these: of two operations as they stand, and of any two
    operations of one loop (or one with itself) from an iteration to a later one."""
    per_op = Counter((place.at, place.group) for place in found)
    per_group: Counter[int] = Counter()
    squares: Counter[int] = Counter()
    for (_, group), count in per_op.items():
        per_group[group] += count
        squares[group] += count * count
    forward = (sum(per_group.values()) ** 2 - sum(squares.values())) // 2
    return forward + sum((per_group[g] ** 2 + squares[g]) // 2 for g in per_group if g >= 0)


def total_order(kernel: Kernel) -> list[tuple[str, str, Distance]]:
    """The order that is always right: one operation after the other, each loop closed.

    From the last operation of a loop's body to its first, one iteration later; loops without an
    operation have none.
    """
    edges: list[tuple[str, str, Distance]] = []
    ops = list(kernel.ops())
    for one, other in pairwise(ops):
        depth = sum(a == b for a, b in zip(one.loops, other.loops, strict=False))
        edges.append((one.id, other.id, (0,) * depth))
    for depth, inside in _loops(kernel.body, 0):
        edges.append((inside[-1].id, inside[0].id, (*(0,) * depth, 1)))
    return edges


def _loops(body: tuple[Node, ...], depth: int) -> Iterator[tuple[int, list[Op]]]:
    for node in body:
        if isinstance(node, Loop):
            inside = list(_ops(node))
            if inside:
                yield depth, inside
            yield from _loops(node.body, depth + 1)
