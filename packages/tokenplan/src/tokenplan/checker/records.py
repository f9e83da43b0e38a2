"""A plan file in memory. Offsets, strides and widths count bytes; loops count iterations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Affine:
    """constant + Σ coefficient · iteration of a loop."""

    constant: int
    terms: Mapping[str, int]

    def at(self, iterations: Mapping[str, Any]) -> Any:
        """The number, or the array of numbers, for these iterations."""
        value: Any = self.constant
        for loop, coefficient in self.terms.items():
            value = value + coefficient * iterations[loop]
        return value


@dataclass(frozen=True, slots=True)
class Swizzle:
    """The byte address a is at constant ^ (columns[k] for every bit k of a), bit by bit.

    Bits that have no column stay.
    """

    columns: tuple[int, ...]
    constant: int

    def __call__(self, addresses: np.ndarray) -> np.ndarray:
        moved = addresses >> len(self.columns) << len(self.columns)
        for bit, column in enumerate(self.columns):
            moved = moved ^ ((addresses >> bit & 1) * column)
        return moved ^ self.constant


@dataclass(frozen=True, slots=True)
class Buffer:
    id: str
    space: str
    shape: tuple[int, ...]
    itemsize: int
    scope: tuple[str, ...]
    """Loops in whose iterations it is allocated again, outermost first."""
    is_parameter: bool

    @property
    def num_bytes(self) -> int:
        return prod(self.shape) * self.itemsize

    @property
    def is_memory(self) -> bool:
        """Whether it is what all tensors with addresses in a memory share."""
        return self.id == f"{self.space}@"

    def element(self, byte: int) -> tuple[int, ...]:
        """Indices of the element that holds this byte; rows are last."""
        rest, index = byte // self.itemsize, []
        for extent in reversed(self.shape):
            rest, here = divmod(rest, extent)
            index.append(here)
        return tuple(reversed(index))


@dataclass(frozen=True, slots=True)
class Access:
    """The bytes offset + Σ strides[d] · i[d] + [0, width), 0 <= i[d] < shape[d]."""

    buffer: str
    mode: str
    """R, W or A (accumulate: commutes with itself)."""
    offset: Affine
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    width: int
    operand: str
    swizzle: Swizzle | None = None
    """What moves these bytes to where they lie."""


@dataclass(frozen=True, slots=True)
class Op:
    id: str
    loops: tuple[str, ...]
    """Outermost first."""
    accesses: tuple[Access, ...]
    location: str | None


@dataclass(frozen=True, slots=True)
class Loop:
    id: str
    trips: int
    body: tuple[Op | Loop, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """At iteration j, `sink` starts after every instance of `source` up to j - distance is done."""

    index: int
    source: str
    sink: str
    distance: tuple[int, ...]
    kind: str
    status: str
    buffer: str | None
    witness: Witness | None
    rule: str = ""
    assumes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.source} -> {self.sink} at distance {list(self.distance)}"


@dataclass(frozen=True, slots=True)
class Witness:
    """A byte that both access, and the iterations in which they do."""

    buffer: str
    byte: int
    element: tuple[int, ...]
    source: Mapping[str, int]
    sink: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Wait:
    """`op` starts when `queue` has counted unit · count, evaluated `distance` iterations ago."""

    index: int
    op: str
    queue: str
    after: str
    distance: tuple[int, ...]
    count: Affine
    unit: int

    def __str__(self) -> str:
        return f"wait {self.index} ({self.op} for {self.after} on {self.queue})"


@dataclass(frozen=True, slots=True)
class Plan:
    queues: Mapping[str, str]
    slots: Mapping[str, int]
    waits: tuple[Wait, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """`parallel` or `pipeline` of a loop, the two operations of a `join`, or the two buffers that
    may share bytes (`may_alias`)."""

    index: int
    what: str
    loop: str = ""
    depth: int = 1
    ops: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts by name; `rules` say how many pairs each removed."""

    counts: Mapping[str, int]
    rules: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PlanFile:
    """Everything that is checked."""

    kernel: str
    buffers: Mapping[str, Buffer]
    body: tuple[Op | Loop, ...]
    edges: tuple[Edge, ...]
    claims: tuple[Claim, ...]
    assumptions: tuple[str, ...]
    diagnostics: tuple[str, ...]
    """Their texts."""
    stats: Stats
    plan: Plan | None

    def nodes(self) -> Iterator[Op | Loop]:
        """Operations and loops in program order, outer before inner."""
        yield from _walk(self.body)

    def ops(self) -> dict[str, Op]:
        return {node.id: node for node in self.nodes() if isinstance(node, Op)}

    def trips(self) -> dict[str, int]:
        return {node.id: node.trips for node in self.nodes() if isinstance(node, Loop)}


def _walk(body: tuple[Op | Loop, ...]) -> Iterator[Op | Loop]:
    for node in body:
        yield node
        if isinstance(node, Loop):
            yield from _walk(node.body)


def shared(a: Op, b: Op) -> tuple[str, ...]:
    """The loops around both, outermost first."""
    together = [x == y for x, y in zip(a.loops, b.loops, strict=False)]
    depth = together.index(False) if False in together else len(together)
    return a.loops[:depth]
