"""Orders that a plan must keep: needed edges, and instances of buffers that share a slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd, prod

import numpy as np

from tokenplan.graph.token_graph import ALIAS, KEPT, Edge
from tokenplan.kernel.model import Access, Buffer, Kernel, Mode, Op, commute, shared_loops
from tokenplan.neuroncore.nests import least_linear, linear

ACCUMULATE = "accumulate"
MOST_BLOCKS = 2**20
"""Blocks of bytes of one buffer up to which it is looked which of them two operations share."""


@dataclass(frozen=True, slots=True)
class Need:
    """`op` starts after every instance of `after` that is `distance` back has completed.

    `distance` counts the outermost loops that both share; it is not negative, and is counted
    through: an iteration that does not exist in the inner loop is one of the iteration before.
    """

    op: str
    after: str
    distance: tuple[int, ...]
    kind: str
    buffer: str
    slots: int = 0
    """How many places the buffer has, where it is their reuse that makes the order needed."""

    @property
    def why(self) -> str:
        """RAW x, or WAR x reused after 2."""
        return f"{self.kind} {self.buffer}".strip() + (
            f" reused after {self.slots}" if self.slots else ""
        )


def of_edges(kernel: Kernel, edges: Iterable[Edge], statuses: Iterable[str]) -> Iterator[Need]:
    """One need per edge of these statuses."""
    ops, loops = {op.id: op for op in kernel.ops()}, kernel.loops()
    for edge in edges:
        if edge.status in statuses:
            shared = shared_loops(ops[edge.source], ops[edge.sink])
            distance = _countable([loops[loop].trips for loop in shared], edge.distance)
            kind = _kind(ops[edge.source], ops[edge.sink], edge)
            held = ALIAS if edge.rule == ALIAS else edge.buffer
            yield Need(edge.sink, edge.source, distance, kind, held)


def _kind(source: Op, sink: Op, edge: Edge) -> str:
    """RAW where data goes along the edge, also where accumulation is one of its ends."""
    if edge.kind != ACCUMULATE:
        return edge.kind
    modes = [
        {access.mode for access in op.accesses if access.buffer == edge.buffer}
        for op in (source, sink)
    ]
    found = {_KIND[a, b] for a in modes[0] for b in modes[1] if not commute(a, b)}
    return next(kind for kind in ("RAW", "WAW", "WAR") if kind in found)


def _countable(trips: list[int], distance: tuple[int, ...]) -> tuple[int, ...]:
    """The edge's distance as a need's: where it goes back in an inner loop, all of that loop."""
    depth = next((n for n, step in enumerate(distance) if step < 0), len(distance))
    distance, trips = distance[:depth], trips[:depth]
    number = least_linear(distance, trips) if any(distance) and all(trips) else 0
    if linear(distance, trips) == number:
        return distance
    return (*(0 for _ in distance[1:]), number)


def of_slots(kernel: Kernel, slots: Mapping[str, int]) -> Iterator[Need]:
    """Instance n of a buffer is where instance n - slots was, whose users its own wait for."""
    users: dict[str, dict[str, list[Access]]] = {}
    ops = {op.id: op for op in kernel.ops()}
    for op in ops.values():
        for access in op.accesses:
            users.setdefault(access.buffer, {}).setdefault(op.id, []).append(access)
    loops = kernel.loops()
    for name, places in slots.items():
        scope = kernel.buffers[name].scope
        if places >= prod(loops[loop].trips for loop in scope):
            continue
        masks = _Masks(kernel, kernel.buffers[name])
        for after, earlier in users.get(name, {}).items():
            for op, later in users[name].items():
                kind = masks.conflict(ops[after], earlier, ops[op], later)
                if kind:
                    distance = (*[0] * len(scope[1:]), places)
                    yield Need(op, after, distance, kind, name, places)


class _Masks:
    """Which blocks of a buffer an access has in some iteration."""

    def __init__(self, kernel: Kernel, buffer: Buffer) -> None:
        self.kernel, self.buffer = kernel, buffer
        used = [a for op in kernel.ops() for a in op.accesses if a.buffer == buffer.id]
        sizes = [buffer.num_bytes]
        for access in used:
            steps = [coefficient for _, coefficient in access.offset.terms]
            sizes += [access.width, access.offset.constant, *access.strides, *steps]
        self.block = gcd(*sizes) or 1
        is_plain = not any(access.swizzle for access in used)
        self.is_small = is_plain and buffer.num_bytes // self.block <= MOST_BLOCKS
        self.known: dict[Access, np.ndarray] = {}

    def conflict(self, after: Op, earlier: list[Access], op: Op, later: list[Access]) -> str:
        """RAW, WAR or WAW between accesses that share a byte; "" where none does."""
        kinds = {
            _KIND[a.mode, b.mode]
            for a in earlier
            for b in later
            if not commute(a.mode, b.mode) and self._meet(after, a, op, b)
        }
        return next((kind for kind in ("RAW", "WAW", "WAR") if kind in kinds), "")

    def _meet(self, after: Op, a: Access, op: Op, b: Access) -> bool:
        return not self.is_small or bool((self._of(after, a) & self._of(op, b)).any())

    def _of(self, op: Op, access: Access) -> np.ndarray:
        if access not in self.known:
            self.known[access] = self._mask(op, access)
        return self.known[access]

    def _mask(self, op: Op, access: Access) -> np.ndarray:
        found, loops = np.zeros(self.buffer.num_bytes // self.block, bool), self.kernel.loops()
        starts = np.array([access.offset.constant])
        terms = dict(access.offset.terms)
        steps = [(loops[loop].trips, terms[loop]) for loop in op.loops if loop in terms]
        steps += list(zip(access.shape, access.strides, strict=True))
        steps.append((access.width // self.block, self.block))
        for count, step in steps:
            starts = np.unique(starts[:, None] + step * np.arange(count))
        found[starts // self.block] = True
        return found


_KIND = {
    (Mode.write, Mode.read): "RAW", (Mode.accumulate, Mode.read): "RAW",
    (Mode.write, Mode.accumulate): "RAW", (Mode.read, Mode.write): "WAR",
    (Mode.read, Mode.accumulate): "WAR", (Mode.write, Mode.write): "WAW",
    (Mode.accumulate, Mode.write): "WAW",
}  # fmt: skip


def all_needs(
    kernel: Kernel,
    edges: Iterable[Edge],
    slots: Mapping[str, int],
    statuses: Iterable[str] = (KEPT,),
) -> list[Need]:
    """Needs of edges and slots, between operations that are executed."""
    loops = kernel.loops()
    runs = {op.id: all(loops[loop].trips for loop in op.loops) for op in kernel.ops()}
    found = [*of_edges(kernel, edges, tuple(statuses)), *of_slots(kernel, slots)]
    return [need for need in dict.fromkeys(found) if runs[need.op] and runs[need.after]]
