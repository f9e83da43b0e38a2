"""Kernels as the planner sees them: operations in loops, and the bytes of each.

Loops count iterations: a loop of T trips has iterations 0 … T-1 independent of the values of its
variable, offsets are affine in iteration numbers, distances are differences of them. Bytes count
from the start of a buffer, row-major over all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import prod

from neuroncore.errors import Place
from neuroncore.layout import Swizzle
from neuroncore.program import Affine

PLAIN = Swizzle()


class Mode(StrEnum):
    """How bytes are accessed. Accumulations into the same bytes commute with one another."""

    read = "R"
    write = "W"
    accumulate = "A"


def commute(a: Mode, b: Mode) -> bool:
    """Whether the order of two accesses to the same bytes does not matter."""
    return a is b and a is not Mode.write


@dataclass(frozen=True, slots=True)
class Buffer:
    """Memory of its own: a tensor, an engine's register, or all tensors at fixed addresses.

    `scope` are the loops (outermost first) in whose iterations it is allocated: two iterations of
    one of them do not share a byte of it.
    """

    id: str
    space: str
    """hbm, private_hbm, shared_hbm, sbuf, psum or register."""
    shape: tuple[int, ...]
    itemsize: int
    scope: tuple[str, ...] = ()
    is_parameter: bool = False
    dtype: str = ""
    """Of its elements, by name; empty where they have no common one."""
    content: str | None = None
    """Of a constant: the SHA-256 of its bytes."""

    @property
    def num_bytes(self) -> int:
        return prod(self.shape) * self.itemsize


@dataclass(frozen=True, slots=True)
class Access:
    """Bytes of a buffer: offset + Σ strides[d] · i[d] + [0, width), 0 <= i[d] < shape[d].

    All counts are bytes; `offset` is affine in the iterations of the loops around. `opaque` says
    why the exact bytes are known on the device alone; the access then names all that it could be.
    """

    buffer: str
    mode: Mode
    offset: Affine
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    width: int
    operand: str = ""
    opaque: str | None = None
    swizzle: Swizzle = PLAIN
    """The transformation from these bytes to their place in the buffer."""


@dataclass(frozen=True, slots=True)
class Loop:
    """`trips` iterations, in which `variable` runs from `start` by `step`."""

    id: str
    variable: str
    trips: int
    start: int
    step: int
    body: tuple[Node, ...]
    place: Place | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Op:
    """One instruction of the kernel, executed once per iteration of its loops (outermost first)."""

    id: str
    instruction: str
    engine: str
    """tensor, vector, scalar, gpsimd, sync or dma."""
    loops: tuple[str, ...]
    accesses: tuple[Access, ...]
    details: tuple[tuple[str, str], ...] = ()
    """Operands (numbers, or a tensor's dtype, extents and strides, in elements) and attributes
    that are not their defaults, by name."""
    place: Place | None = field(default=None, compare=False)


Node = Op | Loop


@dataclass(frozen=True, slots=True)
class Kernel:
    """Operations in program order, in their loops; no two operations or two loops share an id."""

    name: str
    target: str
    buffers: Mapping[str, Buffer]
    body: tuple[Node, ...]
    results: tuple[str, ...] = ()
    """Buffers that it returns, in this order."""
    nki: str = ""
    """The NKI version whose instructions the operations are; empty where none is said."""

    def ops(self) -> Iterator[Op]:
        """Every operation, in program order."""
        return (node for node in walk(self.body) if isinstance(node, Op))

    def loops(self) -> dict[str, Loop]:
        """Every loop by id, outer before inner."""
        return {node.id: node for node in walk(self.body) if isinstance(node, Loop)}


def walk(body: tuple[Node, ...]) -> Iterator[Node]:
    """Every node, outer before inner, in program order."""
    for node in body:
        yield node
        if isinstance(node, Loop):
            yield from walk(node.body)


def shared_loops(a: Op, b: Op) -> tuple[str, ...]:
    """The loops around both, outermost first; distances between them count these."""
    shared = []
    for one, other in zip(a.loops, b.loops, strict=False):
        if one != other:
            break
        shared.append(one)
    return tuple(shared)
