"""A described kernel as the planner sees it: accesses to the bytes of its arrays.

The instances of a grid run in no order, so that grid variables are loops of the kernel model whose
iterations need no order of one another; only orders within one instance become tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from neuroncore.layout import Layout
from neuroncore.layout.factors import Factors, address, cut, merged
from neuroncore.program import Affine
from tokenplan.graph.token_graph import TokenGraph
from tokenplan.kernel.model import (
    Access,
    Buffer,
    Kernel,
    Loop,
    Mode,
    Node,
    Op,
)
from tokenplan.tile_ir.description import (
    Array,
    Compute,
    Described,
    Repeat,
    Statement,
    Transfer,
)

TARGET = "tile_ir"


@dataclass(frozen=True, slots=True)
class Order:
    """`sink` waits for `source`: in the same iteration, or `distance` iterations of `loop` later.

    Then it waits for all instances up to that iteration, the loops around being in one iteration.
    """

    source: str
    sink: str
    loop: str | None = None
    distance: int = 0


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a kernel, and the analysis behind them."""

    kernel: Kernel
    graph: TokenGraph
    needed: tuple[Order, ...]
    """Every order that a conflict or a memory order requires."""
    kept: tuple[Order, ...]
    """Orders that do not follow from others: the tokens."""


@dataclass(frozen=True, slots=True)
class DescribedOrders(Orders):
    """The orders of a described kernel."""

    described: Described


def kernel_of(described: Described, details: Mapping[str, Mapping[str, str]]) -> Kernel:
    """The planner's view, in which only loads and stores are operations; `details` has
    further details of an operation by its id."""
    ranges = described.ranges()
    memories = {a.name: _memory(a, described, ranges) for a in described.arrays}
    outer = tuple(name for name, _ in described.grid)
    body = _Reader(memories, details).nodes(described.body, outer)
    for name, size in reversed(described.grid):
        body = (Loop(name, name, size, 0, 1, body),)
    buffers = {name: memory.buffer for name, memory in memories.items()}
    return Kernel(described.name, TARGET, buffers, body)


@dataclass(frozen=True, slots=True)
class _Memory:
    """The buffer of an array, and where its elements are in it."""

    buffer: Buffer
    array: Array
    dims: tuple[Factors, ...]
    """Steps in elements."""


def _memory(array: Array, described: Described, ranges: Mapping[str, tuple[int, int]]) -> _Memory:
    """The extents of a row-major array end where its last tile ends.

    What a tile has outside of its array is masked; taking it for elements of their own adds no
    order between tiles that do not overlap.
    """
    layout, extents = array.layout, _extents(array, described, ranges)
    dense = Layout.of(array.shape)
    if layout.swizzle or layout.offset or layout.canonical().dims != dense.canonical().dims:
        dims = layout.dims
        span = sum((n - 1) * abs(s) for factors in dims for n, s in factors) + layout.offset + 1
        shape = (span * _growth(extents, array) + (1 << layout.swizzle.width),)
    else:
        dims, shape = Layout.of(extents).dims, extents
    buffer = Buffer(
        array.name, "global", shape, array.itemsize, is_parameter=True, dtype=array.dtype
    )
    return _Memory(buffer, array, dims)


def _extents(
    array: Array, described: Described, ranges: Mapping[str, tuple[int, int]]
) -> tuple[int, ...]:
    """The array's extents, or the ends of the last tiles where these are greater."""
    ends = [array.shape]
    for made in described.transfers():
        if made.array is array:
            last = [index.bounds(ranges)[1] for index in made.index]
            steps = zip(last, made.step, made.tile.shape, strict=True)
            ends.append(tuple(at * step + extent for at, step, extent in steps))
    return tuple(map(max, zip(*ends, strict=True)))


def _growth(extents: tuple[int, ...], array: Array) -> int:
    return max(-(-n // max(1, old)) for n, old in zip(extents, array.shape, strict=True)) + 1


@dataclass(frozen=True, slots=True)
class _Reader:
    memories: Mapping[str, _Memory]
    details: Mapping[str, Mapping[str, str]]

    def nodes(self, body: tuple[Statement, ...], loops: tuple[str, ...]) -> tuple[Node, ...]:
        found: list[Node] = []
        for statement in body:
            match statement:
                case Repeat(name, trips, inner):
                    inside = self.nodes(inner, (*loops, name))
                    found.append(Loop(name, name, trips, 0, 1, inside, statement.place))
                case Transfer():
                    found.append(self.op(statement, loops))
                case Compute():
                    pass
        return tuple(found)

    def op(self, made: Transfer, loops: tuple[str, ...]) -> Op:
        details = {n: getattr(made, n) for n in ("order", "scope", "padding", "mode")}
        own = {name: value for name, value in details.items() if value not in (None, "weak")}
        shown = tuple(sorted({**own, **self.details.get(made.id, {})}.items()))
        access = self.access(made)
        return Op(made.id, made.kind, "memory", loops, (access,), shown, made.place)

    def access(self, made: Transfer) -> Access:
        """The bytes of the tile; all of the buffer where they are not affine in the loops."""
        memory, array = self.memories[made.array.name], made.array
        mode, size = Mode.read if made.kind == "load" else Mode.write, array.itemsize
        offset, boxes = Affine(array.layout.offset), []
        for index, step, extent, factors in zip(
            made.index, made.step, made.tile.shape, memory.dims, strict=True
        ):
            found = _part(index, step, extent, factors)
            if isinstance(found, str):
                everything = memory.buffer.num_bytes
                return Access(array.name, mode, Affine(), (), (), everything, "", found)
            offset += found[0]
            boxes += found[1]
        shape, strides, width = _boxed(boxes, size)
        swizzle = array.layout.swizzle.scaled(size.bit_length() - 1)
        return Access(array.name, mode, offset * size, shape, strides, width, "", None, swizzle)


def _part(index: Affine, step: int, extent: int, factors: Factors) -> tuple[Affine, Factors] | str:
    """Where a tile starts in its dimension and which steps it takes; or why this is not affine."""
    whole = merged(factors)
    if len(whole) <= 1:
        stride = whole[0][1] if whole else 0
        return index * (step * stride), ((extent, stride),)
    if step != extent:
        return "tiles of a tiled dimension do not follow one another"
    try:
        outer, inner = cut(whole, extent)
    except ValueError:
        return "tiles cross the blocks of the layout"
    outer = merged(outer)
    if len(outer) > 1 and not index.is_constant:
        return "the tile index has digits of its own in the layout"
    start = index * outer[0][1] if len(outer) == 1 else Affine()
    if len(outer) > 1:
        start = Affine(address(outer, index.constant))
    return start, inner


def _boxed(
    boxes: Iterable[tuple[int, int]], size: int
) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Counts and strides in bytes, the contiguous steps as a width."""
    width, rest = size, [(n, s * size) for n, s in boxes if n > 1]
    while rest and any(s == width for _, s in rest):
        n, s = rest.pop(next(at for at, (_, step) in enumerate(rest) if step == width))
        width = n * s
    return tuple(n for n, _ in rest), tuple(s for _, s in rest), width
