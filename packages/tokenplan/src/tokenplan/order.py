"""Every order that a kernel could need: program order, and from each iteration to later ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from neuroncore.effects import Footprint, footprint
from tokenplan.footprints import Level, Trips, digits_of, linear
from tokenplan.graph import Distance
from tokenplan.model import Access, Buffer, Kernel, Loop, Node, Op


@dataclass(frozen=True, eq=False)
class Place:
    """An access, and where it stands: `at` counts operations, `group` the outermost loop.

    Operations in no loop have a group of their own, -1. `trips` are those of all loops.
    """

    at: int
    op: Op
    access: Access
    group: int
    buffer: Buffer
    trips: Trips

    @cached_property
    def digits(self) -> tuple[Level, ...] | None:
        """The access in rows, columns and so on of its buffer; None where it crosses them."""
        return digits_of(self.access, self.buffer, self.trips)

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """First and one past the last of each digit, or of all bytes where there are none."""
        digits = self.digits if self.digits and not self.access.swizzle else None
        return [digit.bounds(self.trips) for digit in digits or (linear(self.access),)]

    def at_iteration(self, at: Mapping[str, int]) -> Footprint:
        """The bytes that it touches in these iterations, before any swizzle."""
        return self._at_zero.moved(self.access.offset.value(at))

    @cached_property
    def _at_zero(self) -> Footprint:
        return footprint(0, self.access.shape, self.access.strides, self.access.width)


def places(kernel: Kernel) -> list[Place]:
    """Every access that touches a byte, in program order."""
    found, at = [], 0
    trips = {name: (0, loop.trips - 1) for name, loop in kernel.loops().items()}
    for group, node in enumerate(kernel.body):
        inside = isinstance(node, Loop)
        for op in _ops(node):
            found += [
                Place(at, op, access, group if inside else -1, kernel.buffers[access.buffer], trips)
                for access in op.accesses
                if access.width > 0 and 0 not in access.shape
            ]
            at += 1
    return found


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
