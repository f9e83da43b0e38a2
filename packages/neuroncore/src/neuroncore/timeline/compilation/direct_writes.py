"""Results that the closed compiler writes to where the program copies them next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

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
    whole,
)
from neuroncore.timeline.compilation.loop_transformations import written
from nki_dtypes import float32

ELEMENT_BY_ELEMENT = frozenset({"tensor_tensor", "tensor_scalar", "tensor_copy", "activation"})
"""Instructions whose output may be an operand."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """A call with a result, and the copy of it."""

    result: Call
    copy: Call


def written_directly(program: Program, core: NeuronCore) -> Program:
    """The program without the copies of tiles that nothing else reads."""
    uses = dict[str, int]()
    for call in calls(program.body):
        for access in accesses(call):
            uses[access.buffer] = uses.get(access.buffer, 0) + 1
    buffers = program.buffers()
    return replace(program, body=tuple(_direct(program.body, buffers, uses)))


def _direct(
    body: tuple[Statement, ...], buffers: Mapping[str, Buffer], uses: Mapping[str, int]
) -> Iterator[Statement]:
    pairs = [p for p in _pairs(body, buffers) if uses[_place(p.result)] == 2]
    left_out = {_place(pair.result) for pair in pairs}
    by_result = {id(pair.result): pair for pair in pairs}
    copies = {id(pair.copy) for pair in pairs}
    for statement in body:
        match statement:
            case Loop():
                yield replace(statement, body=tuple(_direct(statement.body, buffers, uses)))
            case Allocate(buffer) if buffer.name in left_out:
                pass
            case Call() if pair := by_result.get(id(statement)):
                (output,) = statement.record.outputs[:1]
                direct = {**statement.operands, output: pair.copy.accesses["dst"]}
                yield replace(statement, operands=direct)
            case _ if id(statement) not in copies:
                yield statement


def _pairs(body: tuple[Statement, ...], buffers: Mapping[str, Buffer]) -> Iterator[_Pair]:
    """Calls one after the other, the second of which copies all of the first one's result."""
    for result, copy in pairwise(body):
        if isinstance(result, Call) and isinstance(copy, Call):  # noqa: SIM102
            if _is_copy(result, copy, buffers) and _may_be_place(result, copy):
                yield _Pair(result, copy)


def _place(call: Call) -> str:
    return call.accesses[call.record.outputs[0]].buffer


def _is_copy(result: Call, copy: Call, buffers: Mapping[str, Buffer]) -> bool:
    """Whether the second copies a tile of SBUF that the first fills, within SBUF."""
    names = written(result)
    if copy.instruction != "tensor_copy" or len(names) != 1 or result.is_dma:
        return False
    tile, src, dst = buffers[names[0]], copy.accesses["src"], copy.accesses["dst"]
    is_open = copy.attrs["engine"] is Engine.unknown
    in_sbuf = tile.space is buffers[dst.buffer].space is MemorySpace.sbuf
    is_filled = result.accesses.get(result.record.outputs[0]) == src == whole(tile)
    keeps_value = tile.dtype is float32 or tile.dtype is (dst.dtype or buffers[dst.buffer].dtype)
    return is_open and in_sbuf and is_filled and keeps_value and dst.shape == src.shape


def _may_be_place(result: Call, copy: Call) -> bool:
    """Whether the first reads nothing of where the copy goes, but element by element."""
    dst: Access = copy.accesses["dst"]
    read = [a for a in accesses(result) if a.buffer == dst.buffer]
    is_same = all(access == dst for access in read)
    return not read or (is_same and result.instruction in ELEMENT_BY_ELEMENT)
