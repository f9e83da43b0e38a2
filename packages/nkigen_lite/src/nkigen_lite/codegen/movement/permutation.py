"""Elements in another order by way of SBUF: DMAs with long runs, the exchange on chip; the boxes
of a plan of `nkigen_lite.codegen.movement.axis_placement`."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from neuroncore.enums import MemorySpace
from neuroncore.program import Access, Affine, Buffer, whole
from neuroncore.targets import BANK_BYTES
from nki_dtypes import DType, bfloat16, float32, uint8
from nkigen_lite.codegen.emission.writer import Writer, columns_of
from nkigen_lite.codegen.movement.axis_placement import (
    BETWEEN_ARRAYS,
    AxisPlace,
    AxisSplits,
    Placed,
    StridedAxis,
)
from nkigen_lite.fusion.array_view import ArrayView

WASTE = 8
"""How many times the needed elements a load may read to make one run of them: a short descriptor
takes as long as forty float32. Predicted time decides against the DMA that reads them alone."""

CARRIERS = {4: (float32, float32), 2: (bfloat16, bfloat16), 1: (uint8, bfloat16)}
"""By size of an element: the dtypes in which blocks are moved and are transposed by TensorE, bit
for bit from the third generation on. It widens one byte, so 0 ... 255 are carried as numbers
[NKI: nc_transpose]."""


Distances = dict[StridedAxis, int]
"""Axis → the distance of neighbours along it, in elements of a tile."""


class Reorder:
    """Writes one plan. With `others`, arrays like the source, an axis leads from one to the next:
    its step in the source is BETWEEN_ARRAYS."""

    def __init__(
        self, writer: Writer, to: ArrayView, source: ArrayView, pieces: AxisSplits,
        others: tuple[ArrayView, ...] = (),
    ) -> None:  # fmt: skip
        self.writer, self.to, self.source, self.pieces = writer, to, source, pieces
        self.sources = (source, *others)
        transposes = any(p.place is AxisPlace.across for p in pieces)
        carriers = CARRIERS[to.dtype.itemsize] if transposes else (to.dtype, to.dtype)
        self.dtype, self.transposed_as = carriers

    def write(self) -> None:
        self.boxes(self.pieces, Affine(self.to.offset), Affine(self.source.offset), ())

    def boxes(
        self, pieces: AxisSplits, to: Affine, source: Affine, placed: tuple[Placed, ...]
    ) -> None:  # fmt: skip
        """Loops over the boxes of the first piece, then of the others."""
        if not pieces:
            Box(self, to, source, placed).write()
            return
        piece, axis = pieces[0], pieces[0].axis
        for first, count, outer, inner in piece.cuts():
            each = outer * inner
            with self.writer.loop("box", count) as b:
                start = b * each + first
                mine = (
                    (StridedAxis(outer, axis.to * inner, axis.source * inner), AxisPlace.inside),
                    (replace(axis, size=inner), piece.place),
                )
                self.boxes(
                    pieces[1:], to + start * axis.to, source + start * axis.source,
                    (*placed, *(m for m in mine if m[0].size > 1)),
                )  # fmt: skip

    def look(self, source: ArrayView) -> DType | None:
        """The dtype that an access in HBM names."""
        return None if self.writer.buffers[source.buffer].dtype is self.dtype else self.dtype


class Box:
    """One load, the exchange, one store."""

    def __init__(
        self, plan: Reorder, to: Affine, source: Affine, placed: tuple[Placed, ...]
    ) -> None:  # fmt: skip
        self.plan, self.writer, self.at_target, self.at_source = plan, plan.writer, to, source
        order = sorted(placed, key=lambda p: -p[0].to)
        self.down = [a for a, place in order if place is AxisPlace.down]
        self.across = [a for a, place in order if place is AxisPlace.across]
        self.inside = [a for a, place in order if place is AxisPlace.inside]
        self.transposes = any(p.place is AxisPlace.across for p in plan.pieces)
        self.first = 0
        """The first element's place in the loaded tile: behind elements read backwards."""

    def write(self) -> None:
        loaded, at = self.load()
        stored, into = self.room()
        if self.transposes:
            self.transpose(loaded, at, stored, into)
        else:
            self.copy(loaded, at, stored, into)
        partitions = self.across if self.transposes else self.down
        free = sorted(into, key=lambda a: -a.to)
        target = self.in_hbm(
            self.plan.to, self.at_target, [(a.size, a.to) for a in (*partitions, *free)]
        )  # fmt: skip
        self.writer.call("dma_copy", dst=target, src=whole(stored))

    def in_hbm(self, source: ArrayView, at: Affine, dims: list[tuple[int, int]]) -> Access:
        dims = _merged([d for d in dims if d[0] > 1]) or [(1, 1)]
        shape, strides = zip(*dims, strict=True)
        return Access(source.buffer, at, shape, strides, self.plan.look(source))

    def load(self) -> tuple[Buffer, Distances]:
        """The source's elements in order, and the distance of neighbours along each axis. Gaps
        are read where they are short. What steps backwards inside is loaded forwards."""
        needed, span, held = 1, 1, 1
        at: Distances = {}
        outer: list[tuple[int, int]] = []
        between = [a for a in self.inside if a.source == BETWEEN_ARRAYS]
        within = [a for a in (*self.across, *self.inside) if a not in between]
        lowest = self.at_source
        for axis in sorted(within, key=lambda a: abs(a.source)):
            if not axis.source:
                at[axis] = 0
                continue
            needed *= axis.size
            step = abs(axis.source)
            reach = step * (axis.size - 1) + span
            if not outer and reach <= WASTE * needed:
                distance, span = step, reach
                held = span
            else:
                distance = held
                outer.insert(0, (axis.size, step))
                held *= axis.size
            at[axis] = distance if axis.source > 0 else -distance
            if axis.source < 0:
                self.first += distance * (axis.size - 1)
                lowest += axis.source * (axis.size - 1)
        at |= dict.fromkeys(between, held)
        sources = self.plan.sources if between else self.plan.sources[:1]
        shape = (max(1, prod(a.size for a in self.down)), len(sources) * held)
        tile = self.writer.allocate(
            f"{self.plan.source.buffer}_tile", shape, self.plan.dtype, MemorySpace.sbuf
        )  # fmt: skip
        dims = [*((a.size, a.source) for a in self.down), *outer, (span, 1)]
        for number, source in enumerate(sources):
            place = self.in_hbm(source, lowest + (source.offset - self.plan.source.offset), dims)
            self.writer.call("dma_copy", dst=columns_of(tile, number * held, held), src=place)
        return tile, at

    def room(self) -> tuple[Buffer, Distances]:
        """A tile in the target's order, and the distance of neighbours along each axis."""
        partitions, free = (
            (self.across, (*self.down, *self.inside))
            if self.transposes
            else (self.down, self.inside)
        )
        into: Distances = {}
        held = 1
        for axis in sorted(free, key=lambda a: a.to):
            into[axis] = held
            held *= axis.size
        shape = (max(1, prod(a.size for a in partitions)), held)
        tile = self.writer.allocate("reordered", shape, self.plan.dtype, MemorySpace.sbuf)
        return tile, into

    def copy(
        self, loaded: Buffer, at: Distances, stored: Buffer, into: Distances
    ) -> None:  # fmt: skip
        """All that is inside, the axis last that both sides step through in small steps."""
        axes = sorted(self.inside, key=lambda a: -max(abs(at[a]), into[a]))
        sides = [(loaded, at, self.first), (stored, into, 0)]
        src, dst = (
            Access(tile.name, Affine(first), (tile.shape[0], *(a.size for a in axes)),
                   (tile.row, *(steps[a] for a in axes)))
            for tile, steps, first in sides
        )  # fmt: skip
        self.writer.call("tensor_copy", dst=dst, src=src)

    def transpose(
        self, loaded: Buffer, at: Distances, stored: Buffer, into: Distances
    ) -> None:  # fmt: skip
        """`down` x `across` blocks through PSUM, as many as fill a bank before each copy."""
        loaded, rows = self.widened(loaded), loaded.shape[0]
        blocks = sorted(self.inside, key=lambda a: -a.size)
        many, *outer = blocks or [StridedAxis(1, 0, 0)]
        each = max(1, BANK_BYTES // (rows * self.plan.transposed_as.itemsize))
        with self.writer.loops("block", [a.size for a in outer]) as places:
            offset, target = Affine(self.first), Affine()
            for axis, number in zip(outer, places, strict=True):
                offset, target = offset + number * at[axis], target + number * into[axis]
            along, to = at.get(many, 0), into.get(many, 0)
            for first, count in self.writer.tiles("bank", many.size, each):
                self.bank(loaded, offset + first * along, (count, along), at,
                          stored, target + first * to, to, into)  # fmt: skip

    def widened(self, loaded: Buffer) -> Buffer:
        """The tile as TensorE transposes it."""
        if loaded.dtype is self.plan.transposed_as:
            return loaded
        wide = self.writer.allocate(
            "widened", loaded.shape, self.plan.transposed_as, MemorySpace.sbuf
        )
        self.writer.call("tensor_copy", dst=whole(wide), src=whole(loaded))
        return wide

    def bank(
        self, loaded: Buffer, offset: Affine, blocks: tuple[int, int], at: Distances,
        stored: Buffer, target: Affine, step: int, into: Distances,
    ) -> None:  # fmt: skip
        """`blocks` (count, distance) blocks transposed into one PSUM bank, and out."""
        (count, distance), rows, columns = blocks, loaded.shape[0], stored.shape[0]
        transposed = self.writer.allocate(
            "transposed", (columns, count, rows), self.plan.transposed_as, MemorySpace.psum
        )  # fmt: skip
        dims = _merged([(a.size, at[a]) for a in self.across]) or [(1, 1)]
        for k in range(count):
            self.writer.call(
                "nc_transpose",
                dst=columns_of(transposed, k * rows, rows),
                data=Access(loaded.name, offset + k * distance, (rows, *(n for n, _ in dims)),
                            (loaded.row, *(s for _, s in dims))),
            )  # fmt: skip
        outs = [(count, step)] if count > 1 else []
        dims = _merged([*outs, *((a.size, into[a]) for a in self.down)]) or [(1, 1)]
        self.writer.call(
            "tensor_copy", src=whole(transposed),
            dst=Access(stored.name, target, (columns, *(n for n, _ in dims)),
                       (stored.row, *(s for _, s in dims))),
        )  # fmt: skip


def _merged(dims: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Neighbouring dimensions (size, stride) as one where one continues the other."""
    found: list[tuple[int, int]] = []
    for size, stride in dims:
        if found and found[-1][1] == size * stride:
            found[-1] = (found[-1][0] * size, stride)
        else:
            found.append((size, stride))
    return found
