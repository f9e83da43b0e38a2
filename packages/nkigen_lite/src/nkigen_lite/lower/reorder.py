"""Elements in another order by way of SBUF: DMAs with long runs, the exchange on chip.

The plan comes from the strides of both sides alone. Some axes lie on partitions when loaded
(`down`), some when stored (`across`), the rest inside partitions (`inside`). Where `across` is
empty partitions stay what they are and a strided copy exchanges the rest; else TensorE turns
`down` x `across` blocks around, and the copy out of PSUM orders what is inside. A box of this kind
is 8 KiB per partition; the other axes, and more of those, are loops over boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import Enum
from math import prod

from neuroncore.engines import Space as Memory
from neuroncore.program import Access, Affine, Buffer, whole
from nki_dtypes import DType, bfloat16, float32, uint8
from nkigen_lite.lower.sources import Source
from nkigen_lite.lower.tiles import parts
from nkigen_lite.lower.writer import Writer

PARTITIONS = 128
BOX_BYTES = 8 * 1024
BANK_BYTES = 2048
INNER_SHARE = 4
"""An axis that lies inside alone takes at most this part of a box: others may have to lie there."""

RUN_BYTES = 512
"""From here on descriptors cost next to nothing beside their bytes."""

ENOUGH = 64
"""So many partitions when stored are worth no further axis: it would cut the runs of the target."""

WASTE = 8
"""How many times the needed elements a load may read to make one run of them: a short descriptor
takes as long as forty float32. Predicted time decides against the DMA that reads them alone."""

CARRIERS = {4: (float32, float32), 2: (bfloat16, bfloat16), 1: (uint8, bfloat16)}
"""By size of an element: the dtypes in which blocks are moved and are transposed by TensorE, bit
for bit from the third generation on. It widens one byte, so 0 ... 255 are carried as numbers
[NKI: nc_transpose]."""

APART = 1 << 62
"""The step in the source from one array to the next, where several become one."""


@dataclass(frozen=True, slots=True)
class Step:
    """An axis of elements: `size` of them, one step along it is `to` and `source` elements."""

    size: int
    to: int
    source: int

    def split(self, inner: int) -> tuple[Step, Step]:
        """(outer, inner) axes."""
        outer = Step(self.size // inner, self.to * inner, self.source * inner)
        return outer, replace(self, size=inner)


class Place(Enum):
    """Where an axis of a box lies."""

    down = "on partitions when loaded"
    across = "on partitions when stored"
    inside = "inside partitions"
    loop = "one element at a time"


@dataclass(frozen=True, slots=True)
class Piece:
    """An axis of a plan: `inner` elements lie at `place`, `outer` times as many inside partitions,
    the rest is a loop."""

    axis: Step
    place: Place
    inner: int
    outer: int = 1

    def cuts(self) -> Iterator[tuple[int, int, int, int]]:
        """(first, boxes, outer, inner): full ones, then what is left over."""
        size, each = self.axis.size, self.inner * self.outer
        full, rest = divmod(size, each)
        if full:
            yield 0, full, self.outer, self.inner
        if rest // self.inner:
            yield full * each, 1, rest // self.inner, self.inner
        if rest % self.inner:
            yield size - rest % self.inner, 1, 1, rest % self.inner


Pieces = tuple[Piece, ...]
Placed = tuple[Step, Place]


# -- plans ---------------------------------------------------------------------------------------


def by_copies(axes: Sequence[Step], itemsize: int) -> Pieces | None:
    """Partitions that stay; the runs of both sides lie inside. None where they leave no axis for
    the partitions or are too long."""
    most = BOX_BYTES // itemsize
    axes = [part for axis in axes for part in _cut(axis, most // INNER_SHARE)]
    inside: list[Step] = []
    for order in (_by_source(axes), _by_target(axes)):
        run = 1
        for axis in order:
            held = prod(a.size for a in {*inside, axis})
            if run * itemsize >= RUN_BYTES or held > most:
                break
            run *= axis.size
            if axis not in inside:
                inside.append(axis)
    rest = sorted((a for a in axes if a not in inside), key=lambda a: -a.size)
    if not rest and inside:
        longest = max(inside, key=lambda a: a.size)
        inside.remove(longest)
        outer, inner = longest.split(longest.size // _divisor(longest.size, PARTITIONS))
        inside, rest = [*inside, inner], [outer]
    if not inside or not rest:
        return None
    down, left = _gathered(rest, Place.down)
    down[-1] = _grown(down[-1], most // prod(a.size for a in inside))
    pieces = [Piece(a, Place.inside, a.size) for a in inside]
    return (*pieces, *down, *(Piece(a, Place.loop, 1) for a in left))


def _divisor(size: int, most: int) -> int:
    """The largest divisor up to `most`."""
    return next(d for d in range(min(size, most), 0, -1) if size % d == 0)


def _cut(axis: Step, most: int) -> list[Step]:
    """An axis that is too long to lie inside as two, where a number divides it."""
    inner = _divisor(axis.size, most)
    return [axis] if axis.size <= most or inner == 1 else list(axis.split(inner))


def by_transposes(axes: Sequence[Step], itemsize: int) -> Pieces | None:
    """Inner axes of the source on partitions when stored, inner axes of the target when loaded.
    None where both sides have the same inner axes."""
    most = BOX_BYTES // itemsize
    sources, targets = _by_source(axes), _by_target(axes)
    inside: list[Step] = []
    while sources and targets and sources[0] == targets[0]:
        inside.append(sources.pop(0))
        targets.pop(0)
    if not sources or not targets or prod(a.size for a in inside) > most // PARTITIONS:
        return None
    across, left = _gathered(sources, Place.across)
    used = {p.axis for p in across}
    free = [a for a in targets if a not in sources] + [a for a in left if a.source]
    free = sorted((a for a in free if a not in used), key=lambda a: a.to)
    if not free:
        return None
    down, left = _gathered(free, Place.down)
    room = most // (prod(a.size for a in inside) * max(_held(across), _held(down)))
    pieces = [Piece(a, Place.inside, a.size) for a in inside]
    if not room:
        return None
    down[-1] = _grown(down[-1], room)
    room //= down[-1].outer
    for axis in sorted(left, key=lambda a: a.to):
        pieces.append(Piece(axis, Place.inside, min(axis.size, room)))
        room //= pieces[-1].inner
    across[-1] = _grown(across[-1], room)
    return (*pieces, *down, *across)


def _by_source(axes: Sequence[Step]) -> list[Step]:
    return sorted((a for a in axes if a.source), key=lambda a: a.source)


def _by_target(axes: Sequence[Step]) -> list[Step]:
    return sorted(axes, key=lambda a: a.to)


def _held(pieces: list[Piece]) -> int:
    return prod(p.inner for p in pieces)


def _grown(piece: Piece, room: int) -> Piece:
    """The piece with as much more of its axis inside partitions as there is room for."""
    return replace(piece, outer=max(1, min(room, -(-piece.axis.size // piece.inner))))


def _gathered(axes: Sequence[Step], place: Place) -> tuple[list[Piece], list[Step]]:
    """Axes in order on partitions until they are enough, and what is left. Of an axis that is too
    long for those before it, a divisor: its outer part when loaded, its inner one when stored."""
    taken: list[Piece] = []
    left, held = list(axes), 1
    while left and held < (PARTITIONS if place is Place.down else ENOUGH):
        axis = left[0]
        if not taken or held * axis.size <= PARTITIONS:
            taken.append(Piece(left.pop(0), place, min(axis.size, PARTITIONS)))
            held *= taken[-1].inner
            continue
        fits = (d for d in range(PARTITIONS // held, 1, -1) if axis.size % d == 0)
        count = next(fits, 1)
        if count == 1:
            break
        left.pop(0)
        if place is Place.down:
            outer, inner = axis.split(axis.size // count)
            taken.insert(0, Piece(outer, place, count))
            left.insert(0, inner)
        else:
            outer, inner = axis.split(count)
            taken.insert(0, Piece(inner, place, count))
            left.insert(0, outer)
        break
    return taken, left


# -- code ----------------------------------------------------------------------------------------


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
        are read where they are short."""
        needed, span, held = 1, 1, 1
        at: dict[Step, int] = {}
        outer: list[tuple[int, int]] = []
        apart = [a for a in self.inside if a.source == APART]
        within = [a for a in (*self.across, *self.inside) if a not in apart]
        for axis in sorted(within, key=lambda a: a.source):
            if not axis.source:
                at[axis] = 0
                continue
            needed *= axis.size
            reach = axis.source * (axis.size - 1) + span
            if not outer and reach <= WASTE * needed:
                at[axis], span = axis.source, reach
                held = span
            else:
                at[axis] = held
                outer.insert(0, (axis.size, axis.source))
                held *= axis.size
        at |= dict.fromkeys(apart, held)
        sources = self.plan.sources if apart else self.plan.sources[:1]
        shape = (max(1, prod(a.size for a in self.down)), len(sources) * held)
        tile = self.writer.allocate(
            f"{self.plan.source.buffer}_tile", shape, self.plan.dtype, Memory.sbuf
        )  # fmt: skip
        dims = [*((a.size, a.source) for a in self.down), *outer, (span, 1)]
        for number, source in enumerate(sources):
            place = Access(tile.name, Affine(number * held), (shape[0], held), (tile.row, 1))
            offset = self.at_source + (source.offset - self.plan.source.offset)
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
        axes = sorted(self.inside, key=lambda a: -max(at[a], into[a]))
        sides = [(loaded, at), (stored, into)]
        src, dst = (
            Access(tile.name, Affine(), (tile.shape[0], *(a.size for a in axes)),
                   (tile.row, *(steps[a] for a in axes)))
            for tile, steps in sides
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
            offset, target = Affine(), Affine()
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
