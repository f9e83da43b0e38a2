"""Movements of data that the closed compiler makes otherwise than the program: through TensorE.

A transposing load brings rows of a matrix to SBUF, TensorE transposes them into PSUM, and a copy
moves them to where the load's destination is; a store goes the same way back. Ones times a row is
the row in all partitions of PSUM: it stays there where only VectorE and ScalarE need it, and is
copied to SBUF otherwise. The sign of zeros is the one thing that changes: 0.0 + 1.0 * -0.0 is 0.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

from neuroncore.enums import Engine, MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.program import (
    Access,
    Allocate,
    Buffer,
    Call,
    Loop,
    Program,
    Statement,
    accesses,
    make_call,
    whole,
)
from neuroncore.program.ir.binding import seen_as
from neuroncore.program.ir.traversal import Ranges, visit
from neuroncore.timeline.compilation.rewriting import (
    FreeMemory,
    Legality,
    fields,
    part,
    rewritten,
    written,
)
from nki_dtypes import DType, float32

# -- transposing loads and stores ------------------------------------------------------------------


TILE = 128
"""Rows and columns that TensorE transposes at once."""


def loads_transposed_by_tensor(program: Program, core: NeuronCore) -> Program:
    """Transposing loads as loads of contiguous rows, transposed on TensorE."""
    return _transposed(program, core, loads=True)


def stores_transposed_by_tensor(program: Program, core: NeuronCore) -> Program:
    """Transposing stores as stores of contiguous rows, transposed on TensorE before."""
    return _transposed(program, core, loads=False)


def _transposed(program: Program, core: NeuronCore, loads: bool) -> Program:
    legality, memory, numbers = Legality(program), FreeMemory(program, core), count(1)

    def change(call: Call, ranges: Ranges) -> tuple[Statement, ...]:
        found = _transposition(call, legality)
        if found is None or found.is_load is not loads:
            return (call,)
        tiles = [found.tile(first, next(numbers)) for first in range(0, found.rows, TILE)]
        is_legal = all(tile.is_legal(legality, memory, ranges) for tile in tiles)
        return tuple(s for tile in tiles for s in tile.statements()) if is_legal else (call,)

    return rewritten(program, change)


@dataclass(frozen=True, slots=True)
class _Tile:
    """What moves one tile: a call for each buffer that it fills, and one more."""

    buffers: tuple[Buffer, Buffer]
    calls: tuple[Call, Call, Call]

    def is_legal(self, legality: Legality, memory: FreeMemory, ranges: Ranges) -> bool:
        takes = all(legality.takes(call, ranges, self.buffers) for call in self.calls)
        return takes and memory.fits(*self.buffers)

    def statements(self) -> Iterator[Statement]:
        for buffer, call in zip(self.buffers, self.calls, strict=False):
            yield Allocate(buffer)
            yield call
        yield self.calls[-1]


@dataclass(frozen=True, slots=True)
class _Transposition:
    """A transfer between a matrix in HBM, its columns contiguous, and a tile [columns, rows]."""

    call: Call
    matrix: Access
    """Rows of contiguous elements, at most 128 wide."""
    tile_access: Access
    is_load: bool
    matrix_dtype: DType
    tile_dtype: DType

    @property
    def rows(self) -> int:
        return self.matrix.shape[0]

    def tile(self, first: int, number: int) -> _Tile:
        """The rows from one on that TensorE transposes at once."""
        return (self._load if self.is_load else self._store)(first, number)

    def _load(self, first: int, number: int) -> _Tile:
        rows, dtype = part(self.matrix, 0, first, TILE), self.matrix_dtype
        loaded = Buffer(f"loaded@{number}", rows.shape, dtype, MemorySpace.sbuf)
        transposed = Buffer(f"transposed@{number}", rows.shape[::-1], dtype, MemorySpace.psum)
        place, named = part(self.tile_access, 1, first, TILE), fields(self.call)
        return _Tile((loaded, transposed), (
            make_call("dma_copy", dst=whole(loaded), src=rows, **named),
            make_call("nc_transpose", dst=whole(transposed), data=whole(loaded), **named),
            make_call("tensor_copy", dst=place, src=whole(transposed), **named),
        ))  # fmt: skip

    def _store(self, first: int, number: int) -> _Tile:
        rows, named = part(self.matrix, 0, first, TILE), fields(self.call)
        transposed = Buffer(f"columns@{number}", rows.shape, self.tile_dtype, MemorySpace.psum)
        stored = Buffer(f"stored@{number}", rows.shape, self.matrix_dtype, MemorySpace.sbuf)
        columns = part(self.tile_access, 1, first, TILE)
        return _Tile((transposed, stored), (
            make_call("nc_transpose", dst=whole(transposed), data=columns, **named),
            make_call("tensor_copy", dst=whole(stored), src=whole(transposed), **named),
            make_call("dma_copy", dst=rows, src=whole(stored), **named),
        ))  # fmt: skip


def _transposition(call: Call, legality: Legality) -> _Transposition | None:
    """The transposition of floats that a DMA is; None where it is none."""
    if call.instruction not in {"dma_copy", "dma_transpose"} or not legality.overwrites(call):
        return None
    src, dst, buffers = call.accesses["src"], call.accesses["dst"], legality.buffers
    is_load = buffers[dst.buffer].space is MemorySpace.sbuf
    outside, tile = (src, dst) if is_load else (dst, src)
    matrix = _matrix(call, outside) if len(outside.shape) == len(tile.shape) == 2 else None
    if matrix is None or not _are_floats(outside, tile, buffers) or src.indirect is not None:
        return None
    dtypes = [seen_as(access, buffers[access.buffer]) for access in (outside, tile)]
    return _Transposition(call, matrix, tile, is_load, *dtypes)


def _are_floats(outside: Access, tile: Access, buffers: Mapping[str, Buffer]) -> bool:
    """Whether a transfer of floats is between HBM and SBUF."""
    spaces = buffers[outside.buffer].space, buffers[tile.buffer].space
    are_floats = all(seen_as(a, buffers[a.buffer]).is_float for a in (outside, tile))
    return are_floats and not spaces[0].on_chip and spaces[1] is MemorySpace.sbuf


def _matrix(call: Call, outside: Access) -> Access | None:
    """The matrix in HBM, rows of at most 128 contiguous elements, that a transposing DMA names."""
    matrix = replace(outside, shape=outside.shape[::-1], strides=outside.strides[::-1])
    if call.instruction == "dma_transpose":
        is_source, matrix = outside is call.accesses["src"], outside
    else:
        columns, step = outside.shape[0], outside.strides[1]
        is_source = outside.strides[0] == 1 and abs(step) >= columns and 1 not in outside.shape
    return matrix if is_source and matrix.shape[1] <= TILE else None


# -- broadcasts of a row ---------------------------------------------------------------------------


PARTITIONS = 128
WIDEST = 512
"""Columns of one product in PSUM."""

Used = tuple[Call, Ranges]
"""A call and the values of the loop variables around it."""

ONES = Buffer("ones@broadcast", (1, PARTITIONS), float32, MemorySpace.sbuf)


def broadcast_by_tensor(program: Program, core: NeuronCore) -> Program:
    """Copies of a row in SBUF to all partitions, as products of ones and the row in PSUM."""
    making = _Broadcasts(program, core)
    placed = replace(program, body=tuple(_placed(program.body, making.places)))
    made = rewritten(placed, making.change)
    if made == program:
        return program
    fill = make_call("memset", dst=whole(ONES), value=1.0)
    return replace(made, body=(Allocate(ONES), fill, *made.body))


def _placed(body: tuple[Statement, ...], places: dict[str, Buffer]) -> Iterator[Statement]:
    for statement in body:
        match statement:
            case Allocate(buffer) if buffer.name in places:
                yield replace(statement, buffer=places[buffer.name])
            case Loop():
                yield replace(statement, body=tuple(_placed(statement.body, places)))
            case _:
                yield statement


class _Broadcasts:
    """The broadcasts of a program that go through TensorE, and the buffers in PSUM for them."""

    def __init__(self, program: Program, core: NeuronCore) -> None:
        self.legality, self.memory = Legality(program), FreeMemory(program, core)
        self.numbers = count(1)
        every = [(s, ranges) for s, ranges in visit(program.body) if isinstance(s, Call)]
        found = [(call, ranges) for call, ranges in every if self._is_broadcast(call)]
        if not found or not self.memory.take(ONES):
            found = []
        self.calls = {id(call) for call, _ in found}
        self.places = dict[str, Buffer]()
        """The buffers that contain a broadcast row alone, and can contain it in PSUM."""
        self._place(found, every)

    def change(self, call: Call, ranges: Ranges) -> tuple[Statement, ...]:
        """The products that a broadcast is."""
        if id(call) not in self.calls:
            return (call,)
        dst = call.accesses["dst"]
        place = self.places.get(dst.buffer)
        if place is not None:
            return tuple(_products(call, dst))
        made = tuple(self._copied(call))
        stages = [s.buffer for s in made if isinstance(s, Allocate)]
        is_legal = self.memory.fits(stages[0]) and all(
            self.legality.takes(s, ranges, [ONES, *stages]) for s in made if isinstance(s, Call)
        )
        return made if is_legal else (call,)

    def _copied(self, call: Call) -> Iterator[Statement]:
        """Products in PSUM that are copied to where the broadcast goes, in pieces."""
        dst = call.accesses["dst"]
        for first in range(0, dst.shape[1], WIDEST):
            piece = part(dst, 1, first, WIDEST)
            stage = Buffer(
                f"broadcast@{next(self.numbers)}", piece.shape, float32, MemorySpace.psum
            )
            yield Allocate(stage)
            yield from _products(call, whole(stage), first)
            yield make_call("tensor_copy", dst=piece, src=whole(stage), **fields(call))

    def _is_broadcast(self, call: Call) -> bool:
        """Whether a call copies a row of SBUF to several partitions of it, in float32."""
        if call.instruction != "dma_copy" or not self.legality.overwrites(call):
            return False
        src, dst = call.accesses["src"], call.accesses["dst"]
        buffers = [self.legality.buffers[access.buffer] for access in (src, dst)]
        are_alike = all(b.space is MemorySpace.sbuf and b.dtype is float32 for b in buffers)
        is_plain = src.indirect is src.dtype is dst.dtype is None and len(src.shape) == 2
        return are_alike and is_plain and src.strides[0] == 0 and src.shape == dst.shape

    def _place(self, found: Sequence[Used], every: Sequence[Used]) -> None:
        users = dict[str, list[Used]]()
        for call, ranges in every:
            for name in {access.buffer for access in accesses(call)}:
                users.setdefault(name, []).append((call, ranges))
        for call, ranges in found:
            name = call.accesses["dst"].buffer
            place = replace(self.legality.buffers[name], space=MemorySpace.psum)
            others = [(c, r) for c, r in users[name] if c is not call]
            are_legal = all(self._takes(c, r, place) for c, r in others)
            if are_legal and self._is_place(call, ranges, place) and self.memory.take(place):
                self.places[name] = place

    def _is_place(self, call: Call, ranges: Ranges, place: Buffer) -> bool:
        """Whether products can fill all of the place, as the broadcast does."""
        dst = call.accesses["dst"]
        may_move = self.legality.may_live_longer(place.name)
        return dst == whole(place) and may_move and all(
            self.legality.takes(c, ranges, [ONES, place]) for c in _products(call, dst)
        )  # fmt: skip

    def _takes(self, call: Call, ranges: Ranges, place: Buffer) -> bool:
        """Whether VectorE or ScalarE reads the place as its one operand in PSUM."""
        used = [access.buffer for access in accesses(call)]
        used.remove(place.name)
        psum = {place.name, *self.places}
        in_psum = any(
            name in psum or self.legality.buffers[name].space is MemorySpace.psum for name in used
        )
        engines = set(call.record.engines) - {Engine.gpsimd}
        is_chosen = call.attrs.get("engine", Engine.unknown) in {Engine.unknown, *engines}
        reaches = bool(engines) and engines.isdisjoint({Engine.tensor, Engine.dma})
        is_read = place.name not in written(call) and reaches and is_chosen and not in_psum
        return is_read and self.legality.takes(call, ranges, [place])


def _products(call: Call, dst: Access, start: int = 0) -> Iterator[Call]:
    """Ones times the row from a column on, in pieces, to as many columns of PSUM."""
    partitions, columns = dst.shape
    src = call.accesses["src"]
    row = replace(src, shape=(1, src.shape[1]))
    stationary = replace(whole(ONES), shape=(1, partitions))
    for first in range(0, columns, WIDEST):
        piece = part(dst, 1, first, WIDEST)
        yield make_call(
            "nc_matmul", dst=piece, stationary=stationary, accumulate=False,
            moving=part(row, 1, start + first, piece.shape[1]), is_stationary_onezero=True,
            **fields(call),
        )  # fmt: skip
