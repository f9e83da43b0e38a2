"""Movements of data that the closed compiler leaves to TensorE: transposes and broadcasts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

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
from nki_dtypes import float32

TILE = 128
"""Rows and columns that TensorE transposes at once."""
WIDEST = 512
"""Columns of one product in PSUM."""


def transposed_by_tensor(program: Program, core: NeuronCore) -> Program:
    """Transposing loads as contiguous loads of tiles, transposed on TensorE."""
    buffers, count = program.buffers(), 0

    def change(call: Call) -> tuple[Statement, ...]:
        nonlocal count
        matrix = _transposed_matrix(call, buffers)
        if matrix is None:
            return (call,)
        dst, dtype = call.accesses["dst"], matrix.dtype or buffers[matrix.buffer].dtype
        fields = {"origin": call.origin, "name": call.name}
        made: list[Statement] = []
        for first in range(0, matrix.shape[0], TILE):
            count += 1
            tile = _part(matrix, 0, first)
            loaded = Buffer(f"loaded@{count}", tile.shape, dtype, MemorySpace.sbuf)
            transposed = Buffer(f"transposed@{count}", tile.shape[::-1], dtype, MemorySpace.psum)
            made += (
                Allocate(loaded),
                make_call("dma_copy", dst=whole(loaded), src=tile, **fields),
                Allocate(transposed),
                make_call("nc_transpose", dst=whole(transposed), data=whole(loaded), **fields),
                make_call("tensor_copy", dst=_part(dst, 1, first), src=whole(transposed), **fields),
            )
        return tuple(made)

    return rewritten(program, change)


def _transposed_matrix(call: Call, buffers: Mapping[str, Buffer]) -> Access | None:
    """The matrix of floats in HBM, at most 128 wide, whose transpose a call loads; None if none."""
    src, dst = call.accesses.get("src"), call.accesses.get("dst")
    if src is None or dst is None or buffers[src.buffer].space.on_chip or src.indirect:
        return None
    if call.instruction == "dma_copy":
        src = replace(src, shape=src.shape[::-1], strides=src.strides[::-1])
        is_plain = call.attrs["dst_rmw_op"] is None and dst.indirect is None
        if not is_plain or src.strides[-1] != 1 or 1 in src.shape:
            return None
    elif call.instruction != "dma_transpose":
        return None
    is_matrix = len(src.shape) == len(dst.shape) == 2 and src.shape[1] <= TILE
    in_sbuf = buffers[dst.buffer].space is MemorySpace.sbuf
    is_float = (src.dtype or buffers[src.buffer].dtype).is_float
    return src if is_matrix and in_sbuf and is_float else None


def _part(access: Access, axis: int, first: int, most: int = TILE) -> Access:
    """At most so many indices of an axis, from one on."""
    shape = list(access.shape)
    shape[axis] = min(most, shape[axis] - first)
    offset = access.offset + first * access.strides[axis]
    return replace(access, shape=tuple(shape), offset=offset)


# -- broadcasts ------------------------------------------------------------------------------------


def broadcast_by_tensor(program: Program, core: NeuronCore) -> Program:
    """Copies of a row in SBUF to all partitions, as products of ones and the row in PSUM."""
    buffers = program.buffers()
    users = dict[str, list[Call]]()
    for call in calls(program.body):
        for name in {access.buffer for access in accesses(call)}:
            users.setdefault(name, []).append(call)
    held = peaks(program, core.target)[MemorySpace.psum].held
    room, places = core.free_bytes_of(MemorySpace.psum) - held, dict[str, Buffer]()
    ones = Buffer("ones@broadcast", (1, TILE), float32, MemorySpace.sbuf)

    for call in calls(program.body):
        place = _broadcast_place(call, buffers)
        fits = place is not None and place.free_bytes <= room
        if fits and all(_takes_psum(user, place.name) for user in users[place.name]):
            room -= place.free_bytes
            places[place.name] = replace(place, space=MemorySpace.psum)

    def change(call: Call) -> tuple[Statement, ...]:
        (name, *_) = written(call) or [""]
        return tuple(_products(call, ones)) if name in places else (call,)

    def placed(body: tuple[Statement, ...]) -> Iterator[Statement]:
        for statement in body:
            match statement:
                case Allocate(buffer) if buffer.name in places:
                    yield replace(statement, buffer=places[buffer.name])
                case Loop():
                    yield replace(statement, body=tuple(placed(statement.body)))
                case _:
                    yield statement

    if not places:
        return program
    fill = make_call("memset", dst=whole(ones), value=1.0)
    made = rewritten(replace(program, body=tuple(placed(program.body))), change)
    return replace(made, body=(Allocate(ones), fill, *made.body))


def _broadcast_place(call: Call, buffers: Mapping[str, Buffer]) -> Buffer | None:
    """The buffer all of whose partitions a call fills with a row of SBUF."""
    src, dst = call.accesses.get("src"), call.accesses.get("dst")
    if call.instruction != "dma_copy" or src is None or dst is None or len(src.shape) != 2:
        return None
    place, row = buffers[dst.buffer], buffers[src.buffer]
    is_row = src.strides[0] == 0 and src.indirect is None and row.space is MemorySpace.sbuf
    is_whole = dst == whole(place) and call.attrs["dst_rmw_op"] is None
    are_floats = place.dtype is float32 and src.dtype is None and row.dtype is float32
    is_plain = place.space is MemorySpace.sbuf and place.address is None
    return place if is_row and is_whole and are_floats and is_plain else None


def _takes_psum(call: Call, name: str) -> bool:
    """Whether the call writes the whole buffer as a broadcast, or an engine reads it from PSUM."""
    if name in written(call):
        return call.instruction == "dma_copy"
    return not call.is_dma and Engine.tensor not in call.record.engines


def _products(call: Call, ones: Buffer) -> Iterator[Call]:
    """Ones times the row, in pieces."""
    dst, src = call.accesses["dst"], call.accesses["src"]
    partitions, columns = dst.shape
    row = replace(src, shape=(1, columns))
    stationary = replace(whole(ones), shape=(1, partitions))
    for first in range(0, columns, WIDEST):
        yield make_call(
            "nc_matmul", dst=_part(dst, 1, first, WIDEST), stationary=stationary,
            moving=_part(row, 1, first, WIDEST), is_stationary_onezero=True,
            name=call.name, origin=call.origin,
        )  # fmt: skip
