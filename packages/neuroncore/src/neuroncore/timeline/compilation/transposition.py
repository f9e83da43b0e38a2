"""Transposing loads and stores of floats go through TensorE, tile by tile.

A load brings rows of a matrix to SBUF, TensorE transposes them into PSUM, and a copy moves them to
where the load's destination is; a store goes the same way back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.program import (
    Access,
    Allocate,
    Buffer,
    Call,
    Program,
    Statement,
    make_call,
    whole,
)
from neuroncore.program.ir.binding import seen_as
from neuroncore.program.ir.traversal import Ranges
from neuroncore.timeline.compilation.rewriting import Legality, Room, fields, part, rewritten
from nki_dtypes import DType

TILE = 128
"""Rows and columns that TensorE transposes at once."""


def loads_transposed_by_tensor(program: Program, core: NeuronCore) -> Program:
    """Transposing loads as loads of contiguous rows, transposed on TensorE."""
    return _transposed(program, core, loads=True)


def stores_transposed_by_tensor(program: Program, core: NeuronCore) -> Program:
    """Transposing stores as stores of contiguous rows, transposed on TensorE before."""
    return _transposed(program, core, loads=False)


def _transposed(program: Program, core: NeuronCore, loads: bool) -> Program:
    legality, room, numbers = Legality(program), Room(program, core), count(1)

    def change(call: Call, ranges: Ranges) -> tuple[Statement, ...]:
        found = _transposition(call, legality)
        if found is None or found.is_load is not loads:
            return (call,)
        tiles = [found.tile(first, next(numbers)) for first in range(0, found.rows, TILE)]
        is_legal = all(tile.is_legal(legality, room, ranges) for tile in tiles)
        return tuple(s for tile in tiles for s in tile.statements()) if is_legal else (call,)

    return rewritten(program, change)


@dataclass(frozen=True, slots=True)
class _Tile:
    """What moves one tile: a call for each buffer that it fills, and one more."""

    buffers: tuple[Buffer, Buffer]
    calls: tuple[Call, Call, Call]

    def is_legal(self, legality: Legality, room: Room, ranges: Ranges) -> bool:
        takes = all(legality.takes(call, ranges, self.buffers) for call in self.calls)
        return takes and room.has_for(*self.buffers)

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
