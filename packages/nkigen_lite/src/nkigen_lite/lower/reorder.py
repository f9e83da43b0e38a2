"""Elements in another order by way of SBUF: DMAs with long runs, the exchange on chip; the boxes
of a plan of `nkigen_lite.lower.ordering`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from math import prod

from neuroncore.engines import Space as Memory
from neuroncore.program import Access, Affine, Buffer, whole
from nki_dtypes import DType, bfloat16, float32, uint8
from nkigen_lite.lower.ordering import APART, Pieces, Place, Placed, Step
from nkigen_lite.lower.sources import Source
from nkigen_lite.lower.tiles import parts
from nkigen_lite.lower.writer import Writer

BANK_BYTES = 2048
WASTE = 8
"""How many times the needed elements a load may read to make one run of them: a short descriptor
takes as long as forty float32. Predicted time decides against the DMA that reads them alone."""

CARRIERS = {4: (float32, float32), 2: (bfloat16, bfloat16), 1: (uint8, bfloat16)}
"""By size of an element: the dtypes in which blocks are moved and are transposed by TensorE, bit
for bit from the third generation on. It widens one byte, so 0 ... 255 are carried as numbers
[NKI: nc_transpose]."""


class Reorder:
    """Writes one plan. With `others`, arrays like the source, an axis leads from one to the next:
    its step in the source is APART."""

    def __init__(
        self, writer: Writer, to: Source, source: Source, pieces: Pieces,
        others: tuple[Source, ...] = (),
    ) -> None:  # fmt: skip
        self.writer, self.to, self.source, self.pieces = writer, to, source, pieces
        self.sources = (source, *others)
        turns = any(p.place is Place.across for p in pieces)
        carriers = CARRIERS[to.dtype.itemsize] if turns else (to.dtype, to.dtype)
        self.dtype, self.turned_as = carriers

    def write(self) -> None:
        self.boxes(self.pieces, Affine(self.to.offset), Affine(self.source.offset), ())

    def boxes(
        self, pieces: Pieces, to: Affine, source: Affine, placed: tuple[Placed, ...]
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
                    (Step(outer, axis.to * inner, axis.source * inner), Place.inside),
                    (replace(axis, size=inner), piece.place),
                )
                self.boxes(
                    pieces[1:], to + start * axis.to, source + start * axis.source,
                    (*placed, *(m for m in mine if m[0].size > 1)),
                )  # fmt: skip

    def look(self, source: Source) -> DType | None:
        """The dtype that an access in HBM names."""
        return None if self.writer.buffers[source.buffer].dtype is self.dtype else self.dtype


class Box:
    """One load, the exchange, one store."""

    def __init__(
        self, plan: Reorder, to: Affine, source: Affine, placed: tuple[Placed, ...]
    ) -> None:  # fmt: skip
        self.plan, self.writer, self.at_target, self.at_source = plan, plan.writer, to, source
        order = sorted(placed, key=lambda p: -p[0].to)
        self.down = [a for a, place in order if place is Place.down]
        self.across = [a for a, place in order if place is Place.across]
        self.inside = [a for a, place in order if place is Place.inside]
        self.turns = any(p.place is Place.across for p in plan.pieces)
        self.first = 0
        """Where the first element lies in the loaded tile: behind what is read backwards."""

    def write(self) -> None:
        loaded, at = self.load()
        stored, into = self.room()
        if self.turns:
            self.turn(loaded, at, stored, into)
        else:
            self.copy(loaded, at, stored, into)
        partitions = self.across if self.turns else self.down
        free = sorted(into, key=lambda a: -a.to)
        target = self.in_hbm(
            self.plan.to, self.at_target, [(a.size, a.to) for a in (*partitions, *free)]
        )  # fmt: skip
        self.writer.call("dma_copy", dst=target, src=whole(stored))

    def in_hbm(self, source: Source, at: Affine, dims: list[tuple[int, int]]) -> Access:
        dims = _merged([d for d in dims if d[0] > 1]) or [(1, 1)]
        shape, strides = zip(*dims, strict=True)
        return Access(source.buffer, at, shape, strides, self.plan.look(source))

    def load(self) -> tuple[Buffer, dict[Step, int]]:
        """The source's elements as they lie, and how far neighbours along each axis are apart. Gaps
        are read where they are short. What steps backwards inside is loaded forwards."""
        needed, span, held = 1, 1, 1
        at: dict[Step, int] = {}
        outer: list[tuple[int, int]] = []
        apart = [a for a in self.inside if a.source == APART]
        within = [a for a in (*self.across, *self.inside) if a not in apart]
        lowest = self.at_source
        for axis in sorted(within, key=lambda a: abs(a.source)):
            if not axis.source:
                at[axis] = 0
                continue
            needed *= axis.size
            step = abs(axis.source)
            reach = step * (axis.size - 1) + span
            if not outer and reach <= WASTE * needed:
                apart_by, span = step, reach
                held = span
            else:
                apart_by = held
                outer.insert(0, (axis.size, step))
                held *= axis.size
            at[axis] = apart_by if axis.source > 0 else -apart_by
            if axis.source < 0:
                self.first += apart_by * (axis.size - 1)
                lowest += axis.source * (axis.size - 1)
        at |= dict.fromkeys(apart, held)
        sources = self.plan.sources if apart else self.plan.sources[:1]
        shape = (max(1, prod(a.size for a in self.down)), len(sources) * held)
        tile = self.writer.allocate(
            f"{self.plan.source.buffer}_tile", shape, self.plan.dtype, Memory.sbuf
        )  # fmt: skip
        dims = [*((a.size, a.source) for a in self.down), *outer, (span, 1)]
        for number, source in enumerate(sources):
            place = Access(tile.name, Affine(number * held), (shape[0], held), (tile.row, 1))
            offset = lowest + (source.offset - self.plan.source.offset)
            self.writer.call("dma_copy", dst=place, src=self.in_hbm(source, offset, dims))
        return tile, at

    def room(self) -> tuple[Buffer, dict[Step, int]]:
        """A tile in the target's order, and how far neighbours along each axis are apart."""
        partitions, free = (
            (self.across, (*self.down, *self.inside)) if self.turns else (self.down, self.inside)
        )
        into: dict[Step, int] = {}
        held = 1
        for axis in sorted(free, key=lambda a: a.to):
            into[axis] = held
            held *= axis.size
        shape = (max(1, prod(a.size for a in partitions)), held)
        tile = self.writer.allocate("reordered", shape, self.plan.dtype, Memory.sbuf)
        return tile, into

    def copy(
        self, loaded: Buffer, at: dict[Step, int], stored: Buffer, into: dict[Step, int]
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

    def turn(
        self, loaded: Buffer, at: dict[Step, int], stored: Buffer, into: dict[Step, int]
    ) -> None:  # fmt: skip
        """`down` x `across` blocks through PSUM, as many as fill a bank before each copy."""
        loaded, rows = self.widened(loaded), loaded.shape[0]
        blocks = sorted(self.inside, key=lambda a: -a.size)
        many, *outer = blocks or [Step(1, 0, 0)]
        each = max(1, BANK_BYTES // (rows * self.plan.turned_as.itemsize))
        with ExitStack() as stack:
            offset, target = Affine(self.first), Affine()
            for axis in outer:
                number = stack.enter_context(self.writer.loop("block", axis.size))
                offset, target = offset + number * at[axis], target + number * into[axis]
            along, to = at.get(many, 0), into.get(many, 0)
            for part in parts(many.size, each):
                with self.writer.loop("bank", part.tiles) as b:
                    first = b * part.size + part.start
                    self.bank(loaded, offset + first * along, (part.size, along), at,
                              stored, target + first * to, to, into)  # fmt: skip

    def widened(self, loaded: Buffer) -> Buffer:
        """The tile as TensorE transposes it."""
        if loaded.dtype is self.plan.turned_as:
            return loaded
        wide = self.writer.allocate("widened", loaded.shape, self.plan.turned_as, Memory.sbuf)
        self.writer.call("tensor_copy", dst=whole(wide), src=whole(loaded))
        return wide

    def bank(
        self, loaded: Buffer, offset: Affine, blocks: tuple[int, int], at: dict[Step, int],
        stored: Buffer, target: Affine, step: int, into: dict[Step, int],
    ) -> None:  # fmt: skip
        """`blocks` (count, apart) blocks turned into one PSUM bank, and out."""
        (count, apart), rows, columns = blocks, loaded.shape[0], stored.shape[0]
        turned = self.writer.allocate(
            "turned", (columns, count, rows), self.plan.turned_as, Memory.psum
        )  # fmt: skip
        dims = _merged([(a.size, at[a]) for a in self.across]) or [(1, 1)]
        for k in range(count):
            self.writer.call(
                "nc_transpose",
                dst=Access(turned.name, Affine(k * rows), (columns, rows), (turned.row, 1)),
                data=Access(loaded.name, offset + k * apart, (rows, *(n for n, _ in dims)),
                            (loaded.row, *(s for _, s in dims))),
            )  # fmt: skip
        outs = [(count, step)] if count > 1 else []
        dims = _merged([*outs, *((a.size, into[a]) for a in self.down)]) or [(1, 1)]
        self.writer.call(
            "tensor_copy", src=whole(turned),
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
