"""A kernel program in the making: buffers with names of their own, loops, calls in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from neuroncore.enums import MemorySpace
from neuroncore.errors import Place
from neuroncore.program import (
    Access,
    Affine,
    Allocate,
    Buffer,
    Loop,
    Program,
    Statement,
    accesses,
    make_call,
    whole,
)
from neuroncore.program.ir.naming import RESERVED
from neuroncore.targets import PARTITIONS
from nki_dtypes import DType
from nkigen_lite.codegen.emission.axis_tiling import parts, row_parts
from nkigen_lite.selection.unsupported import CodegenError

MOST_AXES = 5
"""Axes of a view that an instruction takes [NKI dma_copy]."""


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a program was written."""

    buffers: dict[str, Buffer]
    blocks: tuple[tuple[Statement, ...], ...]
    taken: frozenset[str]


class Joined(Protocol):
    """An array that is nowhere in HBM: see `movement.joined_arrays`."""

    def load(self, writer: Writer, dst: Access, src: Access) -> None:
        """What a DMA from the array would do."""
        ...


class Writer:
    """Statements are added to the innermost open loop."""

    def __init__(
        self, name: str, target: str, nki: str, times: dict[str, float] | None = None
    ) -> None:
        self.name, self.target, self.nki = name, target, nki
        self.times: dict[str, float] = {} if times is None else times
        """Predicted microseconds by the text of a program: what was tried once is known."""
        self.forced: dict[int, str] = {}
        """Candidates to take, by the number of the choice; others are chosen by their own time."""
        self.choices: list[list[str]] = []
        """For every choice, the candidates that take little more time than the one taken."""
        self.names: dict[str, str] = {}
        """Values of the graph by what buffers of them are called."""
        self.joined: dict[str, Joined] = {}
        """Arrays that are loaded part by part, by buffer."""
        self.trips: dict[str, int] = {}
        """Iterations of the loops, by variable."""
        self._is_choosing = False
        self._ones: dict[DType, Buffer] = {}
        self.parameters: list[Buffer] = []
        self.buffers: dict[str, Buffer] = {}
        self._blocks: list[list[Statement]] = [[]]
        self._taken: set[str] = set(RESERVED) | {name}

    def parameter(self, name: str, shape: tuple[int, ...], dtype: DType) -> Buffer:
        """An array that the kernel is given."""
        made = Buffer(self.unused(name), shape, dtype, MemorySpace.hbm)
        self.parameters.append(made)
        self.buffers[made.name] = made
        return made

    def allocate(
        self, name: str, shape: tuple[int, ...], dtype: DType, space: MemorySpace,
        origin: Place | None = None,
    ) -> Buffer:  # fmt: skip
        """A new buffer, alive from here to the end of the open loop."""
        made = Buffer(self.unused(name), shape, dtype, space)
        self.buffers[made.name] = made
        self._blocks[-1].append(Allocate(made, origin))
        return made

    def constant(
        self, name: str, shape: tuple[int, ...], dtype: DType, content: bytes,
        origin: Place | None = None,
    ) -> Buffer:  # fmt: skip
        """A constant of these bytes, one for all that are equal; outside of loops."""
        assert len(self._blocks) == 1, "a constant in a loop"
        for known in self.buffers.values():
            if known.content == content and known.dtype is dtype:
                return known
        made = Buffer(self.unused(name), shape, dtype, MemorySpace.shared_hbm, None, content)
        self.buffers[made.name] = made
        self._blocks[-1].append(Allocate(made, origin))
        return made

    def ones(self, dtype: DType) -> Buffer:
        """A row of 128 ones; one for all where none is in a loop."""
        known = self._ones.get(dtype)
        if known is None or self.buffers.get(known.name) is not known:
            known = self.allocate("ones", (1, PARTITIONS), dtype, MemorySpace.sbuf)
            self.call("memset", dst=whole(known), value=1.0)
            if len(self._blocks) == 1:
                self._ones[dtype] = known
        return known

    def call(self, instruction: str, origin: Place | None = None, **fields: Any) -> None:
        """One instruction; a transfer of more axes than a descriptor has is a loop of them."""
        if instruction == "dma_copy" and fields["src"].buffer in self.joined:
            self.joined[fields["src"].buffer].load(self, fields["dst"], fields["src"])
            return
        if instruction == "dma_copy" and len(fields["dst"].shape) > MOST_AXES:
            dst, src = fields["dst"], fields["src"]
            on_chip = any(self.buffers[a.buffer].space.on_chip for a in (dst, src))
            first = int(on_chip)  # partitions stay one axis
            dst, src = together(dst, src, first)
            if len(dst.shape) > MOST_AXES:
                with self.loop("part", dst.shape[first]) as part:
                    rest = {"dst": _at(dst, first, part), "src": _at(src, first, part)}
                    self.call(instruction, origin, **(fields | rest))
                return
            fields |= {"dst": dst, "src": src}
        self._blocks[-1].append(make_call(instruction, None, origin, **fields))

    @contextmanager
    def loop(self, name: str, trips: int) -> Iterator[Affine]:
        """The loop variable as an expression; no loop where there is one iteration."""
        if trips == 1:
            yield Affine()
            return
        variable = self.unused(name)
        self.trips[variable] = trips
        self._blocks.append([])
        yield Affine.variable(variable)
        body = tuple(self._blocks.pop())
        self._taken.discard(variable)
        self._blocks[-1].append(Loop(variable, 0, trips, body))

    @contextmanager
    def loops(self, name: str, sizes: Sequence[int]) -> Iterator[tuple[Affine, ...]]:
        """A loop in a loop for each of the sizes."""
        with ExitStack() as stack:
            yield tuple(stack.enter_context(self.loop(name, n)) for n in sizes)

    def tiles(self, name: str, size: int, tile: int) -> Iterator[tuple[Affine, int]]:
        """(first element, elements) of the tiles of an axis, each in its loop around the body of a
        `for`; the last tile is smaller."""
        for part in parts(size, tile):
            with self.loop(name, part.tiles) as t:
                yield t * part.size + part.start, part.size

    def row_tiles(self, name: str, size: int, each: int) -> Iterator[tuple[Affine, int, int]]:
        """(first row, partitions, rows in each partition) of tiles of rows, as `tiles`."""
        for part, partitions, rows in row_parts(size, each):
            with self.loop(name, part.tiles) as t:
                yield t * part.size + part.start, partitions, rows

    @contextmanager
    def choice(self) -> Iterator[str | None]:
        """Around the candidates of a choice: the one to take, "" for any; None inside another."""
        if self._is_choosing:
            yield None
            return
        self._is_choosing = True
        try:
            yield self.forced.get(len(self.choices), "")
        finally:
            self._is_choosing = False

    def mark(self) -> Mark:
        """Where the program is now; `go_back` makes it so again."""
        blocks = tuple(map(tuple, self._blocks))
        return Mark(dict(self.buffers), blocks, frozenset(self._taken))

    def since(self, mark: Mark) -> tuple[Statement, ...]:
        """Statements added to the block that was open then, and is open now."""
        return tuple(self._blocks[-1][len(mark.blocks[-1]) :])

    def statements(self) -> tuple[Statement, ...]:
        """The written statements, without the loops that are open."""
        return tuple(self._blocks[0])

    def go_back(self, mark: Mark) -> None:
        self.buffers, self._taken = dict(mark.buffers), set(mark.taken)
        self._blocks = [list(block) for block in mark.blocks]

    def finish(self, results: tuple[str, ...]) -> Program:
        """The program that returns these buffers. Raises CodegenError where something else than a
        DMA reads a joined array."""
        (body,) = self._blocks
        if self.joined and any(a.buffer in self.joined for s in body for a in accesses(s)):
            raise CodegenError("a joined array is read in another way than by tiles")
        return Program(
            self.name, tuple(self.parameters), tuple(body), results, self.target, self.nki
        )

    def unused(self, wanted: str) -> str:
        """A name that nothing else has."""
        return new_name(wanted, self._taken.__contains__, self._taken.add)


def new_name(wanted: str, taken: Callable[[str], bool], take: Callable[[str], None]) -> str:
    """`wanted`, with a number behind it where it is taken."""
    name, number = wanted, 1
    while taken(name):
        number += 1
        name = f"{wanted}_{number}"
    take(name)
    return name


def columns_of(buffer: Buffer, start: Affine | int, count: int, rows: int | None = None) -> Access:
    """`count` elements of each partition from `start` on, or of the first `rows` partitions."""
    shape = (buffer.shape[0] if rows is None else rows, count)
    return Access(buffer.name, Affine() + start, shape, (buffer.row, 1))


def _at(access: Access, axis: int, place: Affine) -> Access:
    """One place of an axis."""
    return replace(
        access,
        offset=access.offset + place * access.strides[axis],
        shape=access.shape[:axis] + access.shape[axis + 1 :],
        strides=access.strides[:axis] + access.strides[axis + 1 :],
    )


def dense(rank: int = 1, **accesses: Access) -> dict[str, Any]:
    """The accesses, all of one shape, without axes of one element; of `rank` 2 they keep two."""
    shape = next(iter(accesses.values())).shape
    kept = [d for d, n in enumerate(shape) if n != 1 or d == 0]
    kept += [1] * (len(kept) < rank)
    return {
        name: replace(
            a, shape=tuple(a.shape[d] for d in kept), strides=tuple(a.strides[d] for d in kept)
        )
        for name, a in accesses.items()
    }


def together(dst: Access, src: Access, first: int) -> tuple[Access, Access]:
    """Both with neighbours as one axis, from axis `first` on, where both step through them evenly;
    axes of one element go."""
    shape = list(dst.shape[:first])
    down, along = list(dst.strides[:first]), list(src.strides[:first])
    for size, a, b in list(zip(dst.shape, dst.strides, src.strides, strict=True))[first:]:
        if size == 1:
            continue
        if len(shape) > first and down[-1] == a * size and along[-1] == b * size:
            shape[-1], down[-1], along[-1] = shape[-1] * size, a, b
        else:
            shape.append(size)
            down.append(a)
            along.append(b)
    return (
        replace(dst, shape=tuple(shape), strides=tuple(down)),
        replace(src, shape=tuple(shape), strides=tuple(along)),
    )
