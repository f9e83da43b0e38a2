"""Movements of data that the closed compiler makes otherwise than the program.

Transposing loads and broadcasts of a row go through TensorE, and a result that is copied next is
written to where the copy goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

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
    calls,
    make_call,
    peaks,
    whole,
)
from neuroncore.timeline.compilation.loop_transformations import written
from neuroncore.timeline.compilation.rewriting import rewritten
from nki_dtypes import DType, float32

TILE = 128
"""Rows and columns that TensorE transposes at once."""
WIDEST = 512
"""Columns of one product in PSUM."""


def _part(access: Access, axis: int, first: int, most: int) -> Access:
    """At most so many indices of an axis, from one on."""
    shape = list(access.shape)
    shape[axis] = min(most, shape[axis] - first)
    offset = access.offset + first * access.strides[axis]
    return replace(access, shape=tuple(shape), offset=offset)


# -- transposing loads -----------------------------------------------------------------------------


def transposed_by_tensor(program: Program, core: NeuronCore) -> Program:
    """Transposing loads as contiguous loads of tiles, transposed on TensorE."""
    buffers, count = program.buffers(), 0

    def change(call: Call) -> tuple[Statement, ...]:
        nonlocal count
        matrix = _transposed_matrix(call, buffers)
        if matrix is None:
            return (call,)
        made: list[Statement] = []
        for first in range(0, matrix.shape[0], TILE):
            count += 1
            dtype = matrix.dtype or buffers[matrix.buffer].dtype
            made += _transposed_tile(call, matrix, first, str(count), dtype)
        return tuple(made)

    return rewritten(program, change)


def _transposed_matrix(call: Call, buffers: Mapping[str, Buffer]) -> Access | None:
    """The matrix of floats in HBM, at most 128 wide, whose transpose a call loads; None if none."""
    src, dst = _loaded_matrix(call), call.accesses.get("dst")
    if src is None or dst is None or src.indirect is not None:
        return None
    is_load = (
        buffers[dst.buffer].space is MemorySpace.sbuf and not buffers[src.buffer].space.on_chip
    )
    is_matrix = len(src.shape) == len(dst.shape) == 2 and src.shape[1] <= TILE
    is_float = (src.dtype or buffers[src.buffer].dtype).is_float
    return src if is_load and is_matrix and is_float else None


def _loaded_matrix(call: Call) -> Access | None:
    """The source of a transposition, rows of contiguous elements, also where strides make it."""
    src = call.accesses.get("src")
    if src is None or call.instruction == "dma_transpose":
        return src
    if call.instruction != "dma_copy" or call.attrs["dst_rmw_op"] is not None or 1 in src.shape:
        return None
    if src.strides[0] != 1 or call.accesses["dst"].indirect is not None:
        return None
    return replace(src, shape=src.shape[::-1], strides=src.strides[::-1])


def _transposed_tile(
    call: Call, matrix: Access, first: int, number: str, dtype: DType
) -> Iterator[Statement]:
    tile = _part(matrix, 0, first, TILE)
    loaded = Buffer(f"loaded@{number}", tile.shape, dtype, MemorySpace.sbuf)
    transposed = Buffer(f"transposed@{number}", tile.shape[::-1], dtype, MemorySpace.psum)
    dst, fields = _part(call.accesses["dst"], 1, first, TILE), _fields(call)
    yield Allocate(loaded)
    yield make_call("dma_copy", dst=whole(loaded), src=tile, **fields)
    yield Allocate(transposed)
    yield make_call("nc_transpose", dst=whole(transposed), data=whole(loaded), **fields)
    yield make_call("tensor_copy", dst=dst, src=whole(transposed), **fields)


def _fields(call: Call) -> dict[str, Any]:
    return {"origin": call.origin, "name": call.name}


# -- broadcasts ------------------------------------------------------------------------------------


def broadcast_by_tensor(program: Program, core: NeuronCore) -> Program:
    """Copies of a row in SBUF to all partitions, as products of ones and the row in PSUM."""
    places = _broadcast_places(program, core)
    ones = Buffer("ones@broadcast", (1, TILE), float32, MemorySpace.sbuf)

    def change(call: Call) -> tuple[Statement, ...]:
        is_broadcast = not places.keys().isdisjoint(written(call))
        return tuple(_products(call, ones)) if is_broadcast else (call,)

    if not places:
        return program
    fill = make_call("memset", dst=whole(ones), value=1.0)
    made = rewritten(replace(program, body=tuple(_placed(program.body, places))), change)
    return replace(made, body=(Allocate(ones), fill, *made.body))


def _broadcast_places(program: Program, core: NeuronCore) -> dict[str, Buffer]:
    """The buffers that hold a broadcast row alone, and can hold it in PSUM, by name."""
    buffers = program.buffers()
    users = dict[str, list[Call]]()
    for call in calls(program.body):
        for name in {access.buffer for access in accesses(call)}:
            users.setdefault(name, []).append(call)
    held = peaks(program, core.target)[MemorySpace.psum].held
    room, places = core.free_bytes_of(MemorySpace.psum) - held, dict[str, Buffer]()
    for call in calls(program.body):
        place = _broadcast_place(call, buffers)
        if place is None or place.free_bytes > room:
            continue
        others = [user for user in users[place.name] if user is not call]
        if all(_takes_psum(user, place.name, buffers, places) for user in others):
            room -= place.free_bytes
            places[place.name] = replace(place, space=MemorySpace.psum)
    return places


def _placed(body: tuple[Statement, ...], places: Mapping[str, Buffer]) -> Iterator[Statement]:
    for statement in body:
        match statement:
            case Allocate(buffer) if buffer.name in places:
                yield replace(statement, buffer=places[buffer.name])
            case Loop():
                yield replace(statement, body=tuple(_placed(statement.body, places)))
            case _:
                yield statement


def _broadcast_place(call: Call, buffers: Mapping[str, Buffer]) -> Buffer | None:
    """The buffer all of whose partitions a call fills with a row of SBUF."""
    if call.instruction != "dma_copy" or call.attrs["dst_rmw_op"] is not None:
        return None
    src, dst = call.accesses["src"], call.accesses["dst"]
    place = buffers[dst.buffer]
    is_whole = dst == whole(place) and place.address is None
    are_alike = all(_is_sbuf_float32(b) for b in (place, buffers[src.buffer]))
    return place if is_whole and are_alike and _is_row(src) else None


def _is_row(src: Access) -> bool:
    """Whether all partitions of an access are one."""
    is_plain = src.indirect is None and src.dtype is None
    return src.strides[0] == 0 and len(src.shape) == 2 and is_plain


def _is_sbuf_float32(buffer: Buffer) -> bool:
    return buffer.space is MemorySpace.sbuf and buffer.dtype is float32


def _takes_psum(
    call: Call, name: str, buffers: Mapping[str, Buffer], places: Mapping[str, Buffer]
) -> bool:
    """Whether VectorE or ScalarE reads the buffer, which may then be its one operand in PSUM."""
    used = [access.buffer for access in accesses(call)]
    used.remove(name)
    in_psum = any(n in {name, *places} or buffers[n].space is MemorySpace.psum for n in used)
    engines = set(call.record.engines) - {Engine.gpsimd}
    is_chosen = call.attrs.get("engine", Engine.unknown) in {Engine.unknown, *engines}
    reaches = bool(engines) and engines.isdisjoint({Engine.tensor, Engine.dma})
    return name not in written(call) and reaches and is_chosen and not in_psum


def _products(call: Call, ones: Buffer) -> Iterator[Call]:
    """Ones times the row, in pieces."""
    dst, src = call.accesses["dst"], call.accesses["src"]
    partitions, columns = dst.shape
    row = replace(src, shape=(1, columns))
    stationary = replace(whole(ones), shape=(1, partitions))
    for first in range(0, columns, WIDEST):
        yield make_call(
            "nc_matmul", dst=_part(dst, 1, first, WIDEST), stationary=stationary,
            moving=_part(row, 1, first, WIDEST), is_stationary_onezero=True, **_fields(call),
        )  # fmt: skip


# -- results that are copied -----------------------------------------------------------------------


ELEMENT_BY_ELEMENT = frozenset({"tensor_tensor", "tensor_scalar", "tensor_copy", "activation"})
"""Instructions whose output may be an operand."""
CONVERTING = ELEMENT_BY_ELEMENT | {
    "activation_reduce", "reciprocal", "scalar_tensor_tensor", "tensor_reduce",
    "tensor_tensor_scan",
}  # fmt: skip
"""Instructions that compute in float32 and convert to the dtype of their output."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """A call with a result, and the copy of it."""

    result: Call
    copy: Call

    @property
    def output(self) -> str:
        """The operand that is the result."""
        return self.result.record.outputs[0]

    @property
    def tile(self) -> str:
        return self.result.accesses[self.output].buffer

    def direct(self) -> Call:
        """The call with its result where the copy goes."""
        operands = {**self.result.operands, self.output: self.copy.accesses["dst"]}
        return replace(self.result, operands=operands)


def written_directly(program: Program, core: NeuronCore) -> Program:
    """The program without the copies of tiles that nothing else reads."""
    buffers = program.buffers()
    uses = Counter(a.buffer for call in calls(program.body) for a in accesses(call))
    return replace(program, body=tuple(_direct(program.body, buffers, uses)))


def _direct(
    body: tuple[Statement, ...], buffers: Mapping[str, Buffer], uses: Mapping[str, int]
) -> Iterator[Statement]:
    pairs = [pair for pair in _pairs(body, buffers) if uses[pair.tile] == 2]
    tiles = {pair.tile for pair in pairs}
    direct = {id(pair.result): pair.direct() for pair in pairs}
    copies = {id(pair.copy) for pair in pairs}
    for statement in body:
        match statement:
            case Loop():
                yield replace(statement, body=tuple(_direct(statement.body, buffers, uses)))
            case Allocate(buffer) if buffer.name in tiles:
                pass
            case _ if id(statement) not in copies:
                yield direct.get(id(statement), statement)


def _pairs(body: tuple[Statement, ...], buffers: Mapping[str, Buffer]) -> Iterator[_Pair]:
    """Calls one after the other, the second of which copies all of the first one's result."""
    taken: Statement | None = None
    for result, copy in pairwise(body):
        if result is taken or not isinstance(result, Call) or not isinstance(copy, Call):
            continue
        if _is_copy(result, copy, buffers) and _may_be_place(result, copy):
            taken = copy
            yield _Pair(result, copy)


def _is_copy(result: Call, copy: Call, buffers: Mapping[str, Buffer]) -> bool:
    """Whether the second copies a tile of SBUF that the first fills, within SBUF."""
    if copy.instruction != "tensor_copy" or result.is_dma or len(written(result)) != 1:
        return False
    src, dst = copy.accesses["src"], copy.accesses["dst"]
    tile, place = buffers[src.buffer], buffers[dst.buffer]
    is_filled = result.accesses.get(result.record.outputs[0]) == src == whole(tile)
    in_sbuf = tile.space is place.space is MemorySpace.sbuf and dst.shape == src.shape
    is_open = copy.attrs["engine"] is Engine.unknown
    return (
        is_filled
        and in_sbuf
        and is_open
        and _rounds_once(result, tile.dtype, dst.dtype or place.dtype)
    )


def _rounds_once(result: Call, tile: DType, place: DType) -> bool:
    """Whether a call that writes to the place gives what its float32 tile converted gives."""
    is_narrower = tile is float32 and place.is_float
    return tile is place or (is_narrower and result.instruction in CONVERTING)


def _may_be_place(result: Call, copy: Call) -> bool:
    """Whether the first reads nothing of where the copy goes, but element by element."""
    dst = copy.accesses["dst"]
    read = [access for access in accesses(result) if access.buffer == dst.buffer]
    is_same = all(access == dst for access in read)
    return not read or (is_same and result.instruction in ELEMENT_BY_ELEMENT)
