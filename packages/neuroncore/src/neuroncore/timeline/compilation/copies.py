"""Results are written to where they are copied; copies and fills that are open get an engine."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from neuroncore.enums import Engine, MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.program import (
    Allocate,
    Buffer,
    Call,
    Loop,
    Program,
    Statement,
    accesses,
    calls,
    make_call,
    whole,
)
from neuroncore.program.ir.binding import seen_as
from neuroncore.program.ir.traversal import Ranges
from neuroncore.timeline.compilation.loop_transformations import allocates
from neuroncore.timeline.compilation.rewriting import FreeMemory, Legality, rewritten, written
from nki_dtypes import DType, float32, tfloat32

# -- engines of copies and fills -------------------------------------------------------------------


Choices = Callable[[Call, Legality], list[Call]]
"""What a compiler would rather execute than a call that leaves its engine open."""


def fills_on_gpsimd(program: Program, core: NeuronCore) -> Program:
    """The program with its open fills on GpSimdE."""
    return _chosen(program, _fills)


def copies_on_scalar(program: Program, core: NeuronCore) -> Program:
    """The program with its open copies out of PSUM on ScalarE."""
    return _chosen(program, _copies)


def _chosen(program: Program, choices: Choices) -> Program:
    """The program with the first choice for each call that its machine takes."""
    legality = Legality(program)

    def change(call: Call, ranges: Ranges) -> tuple[Statement, ...]:
        is_open = call.attrs.get("engine") is Engine.unknown
        others = choices(call, legality) if is_open else []
        return (next((c for c in others if legality.takes(c, ranges)), call),)

    return rewritten(program, change)


def _fills(call: Call, legality: Legality) -> list[Call]:
    return [_on(call, Engine.gpsimd)] if call.instruction == "memset" else []


def _copies(call: Call, legality: Legality) -> list[Call]:
    """The copy itself, and the activation that copies where ScalarE has no other copy."""
    src = call.accesses.get("src")
    if call.instruction != "tensor_copy" or src is None:
        return []
    if legality.buffers[src.buffer].space is not MemorySpace.psum:
        return []
    found = [_on(call, Engine.scalar)]
    if goes_through_float32(call, legality.buffers):
        dst = call.accesses["dst"]
        copy = make_call(
            "activation", call.name, call.origin, dst=dst, data=src, op="copy", scale=1.0
        )
        found.append(copy)
    return found


def goes_through_float32(call: Call, buffers: Mapping[str, Buffer]) -> bool:
    """Whether a copy gives the same where its values are float32 on the way."""
    dst, src = (seen_as(a, buffers[a.buffer]) for a in (call.accesses["dst"], call.accesses["src"]))
    return is_float32_between(dst, src)


def is_float32_between(dst: DType, src: DType) -> bool:
    """Whether values are the same where they are float32 between these dtypes: tfloat32 is copied
    with bits that it does not count.
    """
    return dst is not src or (src.is_float and src is not tfloat32)


def _on(call: Call, engine: Engine) -> Call:
    return replace(call, attrs={**call.attrs, "engine": engine})


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
    place: Allocate | None = None
    """Where the copy's destination is allocated, if that is between the two."""

    @property
    def output(self) -> str:
        """The operand that is the result."""
        return self.result.record.outputs[0]

    @property
    def tile(self) -> str:
        return self.result.accesses[self.output].buffer

    def statements(self) -> Iterator[Statement]:
        """What the pair becomes: one call, which has its place."""
        if self.place is not None:
            yield self.place
        yield self.direct()

    def direct(self) -> Call:
        """The call with its result where the copy goes."""
        operands = {**self.result.operands, self.output: self.copy.accesses["dst"]}
        return replace(self.result, operands=operands)


def written_directly(program: Program, core: NeuronCore) -> Program:
    """The program without the copies of tiles that nothing else reads."""
    uses = Counter(a.buffer for call in calls(program.body) for a in accesses(call))
    merging = _Merging(Legality(program), FreeMemory(program, core), uses)
    return replace(program, body=tuple(merging.body(program.body, {})))


@dataclass(slots=True)
class _Merging:
    legality: Legality
    memory: FreeMemory
    uses: Mapping[str, int]

    def body(self, body: tuple[Statement, ...], ranges: Ranges) -> Iterator[Statement]:
        """The statements of a block, results where their copies go, places allocated before."""
        found = list(_Block(body, self.uses).pairs(self._is_legal(ranges)))
        direct = {id(pair.result): pair for pair in found}
        gone = {id(pair.copy) for pair in found} | {id(p.place) for p in found if p.place}
        tiles = {pair.tile for pair in found}
        for statement in body:
            if isinstance(statement, Loop):
                inside = {**ranges, statement.variable: statement.values}
                yield replace(statement, body=tuple(self.body(statement.body, inside)))
            elif id(statement) in direct:
                yield from direct[id(statement)].statements()
            elif id(statement) not in gone and not allocates(statement, tiles):
                yield statement

    def _is_legal(self, ranges: Ranges) -> Callable[[_Pair], bool]:
        def is_legal(pair: _Pair) -> bool:
            buffers, result, copy = self.legality.buffers, pair.result, pair.copy
            if not (_is_copy(result, copy, buffers) and _may_be_place(result, copy)):
                return False
            tile, place = buffers[pair.tile], buffers[copy.accesses["dst"].buffer]
            return (
                self.legality.may_live_longer(tile.name, place.name)
                and self.legality.overwrites(result)
                and self.legality.takes(pair.direct(), ranges)
                and (place.free_bytes <= tile.free_bytes or self.memory.take(place))
            )

        return is_legal


class _Block:
    """The statements of one block, and which buffers each of them accesses."""

    def __init__(self, body: tuple[Statement, ...], uses: Mapping[str, int]) -> None:
        self.body = body
        self.users: dict[str, list[int]] = {}
        """Buffer → the numbers of the statements that access it."""
        self.made: dict[str, int] = {}
        """Buffer that is accessed twice in all → the number of the call that is its first."""
        self.allocated: dict[str, int] = {}
        for number, statement in enumerate(body):
            if isinstance(statement, Allocate):
                self.allocated[statement.buffer.name] = number
            for name in {access.buffer for access in accesses(statement)}:
                self.users.setdefault(name, []).append(number)
        for name, numbers in self.users.items():
            if uses[name] == len(numbers) == 2:
                self.made[name] = numbers[0]

    def pairs(self, is_legal: Callable[[_Pair], bool]) -> Iterator[_Pair]:
        """Results whose copies have nothing between them that accesses where the copy goes."""
        taken: set[int] = set()
        for number, copy in enumerate(self.body):
            if isinstance(copy, Call) and copy.instruction == "tensor_copy":
                pair = self._pair(copy, number)
                if pair is not None and id(pair.result) not in taken and is_legal(pair):
                    taken.add(id(copy))
                    yield pair

    def _pair(self, copy: Call, number: int) -> _Pair | None:
        """The copy that is the statement of this number, and its result."""
        at = self.made.get(copy.accesses["src"].buffer, number)
        result, name = self.body[at], copy.accesses["dst"].buffer
        users, made = self.users[name], self.allocated.get(name, -1)
        is_free = bisect_right(users, at) == bisect_left(users, number)
        if at == number or not isinstance(result, Call) or not is_free:
            return None
        place = self.body[made] if made > at else None
        return _Pair(result, copy, place if isinstance(place, Allocate) else None)


def _is_copy(result: Call, copy: Call, buffers: Mapping[str, Buffer]) -> bool:
    """Whether the second copies a tile of SBUF that the first fills, within SBUF."""
    if result.is_dma or len(written(result)) != 1:
        return False
    src, dst = copy.accesses["src"], copy.accesses["dst"]
    tile, place = buffers[src.buffer], buffers[dst.buffer]
    if dst.indirect is not None:
        return False
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
