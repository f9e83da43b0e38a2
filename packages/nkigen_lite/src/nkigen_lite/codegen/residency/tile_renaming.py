"""A tile that is loaded from an array on chip, or stored to one, as a part of that array.

Elements of a tile have versions: every instruction that overwrites elements makes a new one.
Versions that some access takes together are renamed together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from neuroncore.effects import Touch
from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.program import (
    Access,
    Affine,
    Allocate,
    Buffer,
    Call,
    Loop,
    Statement,
    accesses,
)
from neuroncore.program.ir.binding import machine_call, specs_of
from nkigen_lite.codegen.residency.layouts import Ranges

Body = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Renamer:
    """Renames tiles in blocks of a program with these `buffers`."""

    core: NeuronCore
    nki: str
    buffers: dict[str, Buffer]
    names: dict[int, tuple[Statement, frozenset[str]]] = field(default_factory=dict)
    """The buffers that a statement names, by its id."""
    reads: dict[int, tuple[Call, frozenset[str]]] = field(default_factory=dict)
    """The operands that a call reads, by its id."""

    def without_transfer(
        self, block: Body, number: int, tile: Access, place: Access, ranges: Ranges
    ) -> Body | None:
        """The block without its DMA `number` between a tile and `place`: what the DMA loads or
        stores is in `place` from the start. None where the tile is used in another way too."""
        buffer = self.buffers[tile.buffer]
        alike = buffer.dtype is self.buffers[place.buffer].dtype and tile.dtype is None
        alike &= tile.shape[:1] == place.shape[:1]  # as many partitions
        here = _allocation(block, buffer)
        if here is None or not (alike and _is_all(tile, buffer)):
            return None
        naming = self.naming(enumerate(block), buffer)
        found = self.versions(naming, buffer, ranges)
        if found is None or not found.may_be_renamed(number, _is_store(block[number], tile)):
            return None
        moved = _moved(found.of_transfer(number), buffer, place)
        if moved is None:
            return None
        del naming[number]
        changed = {at: _with_operands(s, moved) for at, s in naming.items()}
        gone = {number} if self.naming(changed.items(), buffer) else {number, here}
        return _without(block, gone, changed)

    def naming(
        self, statements: Iterable[tuple[int, Statement]], buffer: Buffer
    ) -> dict[int, Statement]:
        """The statements that name the buffer, by their numbers."""
        return {at: s for at, s in statements if buffer.name in self.named(s)}

    def versions(
        self, naming: dict[int, Statement], buffer: Buffer, ranges: Ranges
    ) -> Versions | None:
        """The versions of a tile's elements; `naming` are the statements that name it."""
        found = Versions(np.zeros(buffer.row, np.int64))
        for at, statement in naming.items():
            uses = list(self.uses(statement, buffer, ranges, frozenset()))
            if any(use.elements is None for use in uses):
                return None
            found.add(at, uses, isinstance(statement, Loop))
        return found

    def named(self, statement: Statement) -> frozenset[str]:
        """The buffers that the statement names."""
        known = self.names.get(id(statement))
        if known is None:
            known = statement, frozenset(a.buffer for a in accesses(statement))
            self.names[id(statement)] = known
        return known[1]

    def uses(
        self, statement: Statement, buffer: Buffer, ranges: Ranges, inner: frozenset[str]
    ) -> Iterator[Use]:
        """How a statement uses the tile; the variables `inner` are of loops inside of it."""
        if isinstance(statement, Loop):
            variable = statement.variable
            for each in statement.body:
                values = {**ranges, variable: statement.values}
                yield from self.uses(each, buffer, values, inner | {variable})
        elif isinstance(statement, Call) and buffer.name in self.named(statement):
            yield from self.uses_of_call(statement, buffer, ranges, inner)

    def read(self, call: Call) -> frozenset[str]:
        """The operands that the call reads."""
        known = self.reads.get(id(call))
        if known is None:
            made = machine_call(call, specs_of(call, self.buffers, self.core), self.core, self.nki)
            effects = call.record.effects(made)
            read = (effect.operand for effect in effects if effect.touch is not Touch.write)
            known = self.reads[id(call)] = call, frozenset(read)
        return known[1]

    def uses_of_call(
        self, call: Call, buffer: Buffer, ranges: Ranges, inner: frozenset[str]
    ) -> Iterator[Use]:
        read = self.read(call)
        for name, access in call.accesses.items():
            if access.indirect is not None:
                yield Use(call, name, access, None)
            elif access.buffer == buffer.name:
                every = access.shape[0] == buffer.shape[0] and name not in read
                every &= all(variable in inner for variable, _ in access.offset.terms)
                writes = call.record.operands[name].writes
                elements = _elements(access, buffer, ranges)
                yield Use(call, name, access, elements, writes, writes and every)


@dataclass(frozen=True, slots=True)
class Use:
    """One operand that is a tile: the elements of a partition, None where that is not known;
    whether all of them are overwritten."""

    call: Call
    name: str
    access: Access
    elements: np.ndarray | None
    is_write: bool = False
    is_whole: bool = False


@dataclass(slots=True)
class Versions:
    """The version of each element, and which of them statements use: (statement, use, versions)."""

    now: np.ndarray
    uses: list[tuple[int, Use, frozenset[int]]] = field(default_factory=list)
    last: int = 0

    def add(self, at: int, uses: list[Use], is_loop: bool) -> None:
        """A statement's uses: it reads before it writes; a loop that does both changes elements."""
        writes = [u for u in uses if u.is_write]
        for use in uses:
            if not use.is_write:
                self.read(at, use)
        for use in writes:
            self.write(at, use, use.is_whole and (not is_loop or len(writes) == len(uses)))

    def read(self, at: int, use: Use) -> None:
        self.uses.append((at, use, frozenset(self.now[use.elements].tolist())))

    def write(self, at: int, use: Use, anew: bool) -> None:
        """The elements overwritten, as a new version; or changed in part."""
        if anew:
            self.last += 1
            self.now[use.elements] = self.last
        self.read(at, use)

    def together(self, number: int) -> frozenset[int]:
        """The versions of the statement's access, and what others use together with them."""
        mine = frozenset[int]().union(*(v for at, _, v in self.uses if at == number))
        while True:
            more = mine.union(*(v for _, _, v in self.uses if v & mine))
            if more == mine:
                return mine
            mine = more

    def may_be_renamed(self, number: int, stores: bool) -> bool:
        """Whether nothing but the load writes these versions, or nothing writes them after the
        store; none of them is undefined."""
        mine = self.together(number)
        writers = {at for at, use, v in self.uses if v & mine and use.is_write}
        right = max(writers, default=number) < number if stores else writers == {number}
        return 0 not in mine and right

    def of_transfer(self, number: int) -> list[Use]:
        """The uses of the versions that the transfer moves, but for itself."""
        mine = self.together(number)
        return [use for at, use, v in self.uses if v & mine and at != number]


def _is_store(dma: Statement, tile: Access) -> bool:
    assert isinstance(dma, Call)
    return dma.operands["src"] is tile


def _without(block: Body, gone: Set[int], changed: Mapping[int, Statement]) -> Body:
    """The block without some statements, others changed, by their numbers."""
    return tuple(changed.get(at, s) for at, s in enumerate(block) if at not in gone)


def _allocation(block: Body, buffer: Buffer) -> int | None:
    """The number of the statement that allocates the buffer; None where the block does not."""
    every = enumerate(block)
    return next((n for n, s in every if isinstance(s, Allocate) and s.buffer == buffer), None)


def _moved(uses: list[Use], buffer: Buffer, place: Access) -> dict[tuple[int, str], Access] | None:
    """The uses as accesses to `place`, by call and operand; None where one of them is none."""
    moved: dict[tuple[int, str], Access] = {}
    for use in uses:
        new = _inside(use.access, buffer, place)
        if new is None:
            return None
        moved[id(use.call), use.name] = new
    return moved


def _with_operands(statement: Statement, moved: dict[tuple[int, str], Access]) -> Statement:
    """The statement with other accesses for some operands of its calls."""
    if isinstance(statement, Loop):
        return replace(statement, body=tuple(_with_operands(s, moved) for s in statement.body))
    if not isinstance(statement, Call):
        return statement
    new = {n: moved[id(statement), n] for n in statement.operands if (id(statement), n) in moved}
    return replace(statement, operands={**statement.operands, **new}) if new else statement


def _is_all(access: Access, buffer: Buffer) -> bool:
    """Whether the access is to every element of a tile, in order."""
    if buffer.space is not MemorySpace.sbuf or access.size != buffer.size:
        return False
    same_rows = access.shape[0] == buffer.shape[0]
    return same_rows and access.offset == Affine() and _is_dense(access)


def _is_dense(access: Access) -> bool:
    """Whether it reads each partition from its first element to its last."""
    expected = 1
    for size, stride in zip(reversed(access.shape[1:]), reversed(access.strides[1:]), strict=True):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def _elements(access: Access, buffer: Buffer, ranges: Ranges) -> np.ndarray | None:
    """The elements of a partition that the access reaches, for all values of the loop variables."""
    own = access.dtype is None or access.dtype.itemsize == buffer.dtype.itemsize
    if not own or access.indirect is not None:
        return None
    _, start = divmod(access.offset.constant, buffer.row)
    dims = list(zip(access.shape[1:], access.strides[1:], strict=True))
    for variable, step in access.offset.terms:
        if step % buffer.row:
            values = ranges[variable]
            start += values[0] * step
            dims.append((len(values), step * values.step))
    found = _places(start, dims)
    return found if found[0] >= 0 and found[-1] < buffer.row else None


def _places(start: int, dims: Iterable[tuple[int, int]]) -> np.ndarray:
    """`start` and all sums of steps from it, in order, each once; dims are (size, step)."""
    found = np.array([start])
    for size, step in dims:
        if size != 1:
            reached = np.add.outer(found, np.arange(size) * step)
            found = reached[0] if len(found) == 1 and step > 0 else np.unique(reached)
    return found


def _inside(access: Access, buffer: Buffer, place: Access) -> Access | None:
    """An access to the tile as an access to `place`, which holds the tile."""
    row, down = buffer.row, place.strides[0]
    partition, start = divmod(access.offset.constant, row)
    dims = _runs(place)
    offset = _distance(start, dims)
    assert offset is not None
    moved = place.offset + partition * down + offset
    for variable, step in access.offset.terms:
        outer, inner = divmod(step, row)
        along = _distance(inner, dims)
        if (outer and inner) or (len(dims) > 1 and inner) or along is None:
            return None
        moved += Affine.variable(variable, outer * down + along)
    strides = [access.strides[0] // row * down]
    for size, step in zip(access.shape[1:], access.strides[1:], strict=True):
        along = _along(start, size, step, dims)
        if along is None:
            return None
        strides.append(along)
    return replace(access, buffer=place.buffer, offset=moved, strides=tuple(strides))


def _runs(place: Access) -> list[tuple[int, int]]:
    """The free axes of a place, neighbours merged."""
    dims: list[tuple[int, int]] = []
    for size, step in zip(place.shape[1:], place.strides[1:], strict=True):
        if size == 1:
            continue
        if dims and dims[-1][1] == step * size:
            dims[-1] = (dims[-1][0] * size, step)
        else:
            dims.append((size, step))
    return dims or [(1, 1)]


def _distance(element: int, dims: list[tuple[int, int]]) -> int | None:
    """How far an element of the tile is from its first."""
    found = 0
    for number, (size, step) in enumerate(dims):
        each = prod(n for n, _ in dims[number + 1 :])
        found += element // each % size * step
    return found


def _along(start: int, size: int, step: int, dims: list[tuple[int, int]]) -> int | None:
    """The stride of `size` elements of the tile, `step` apart from `start` on; None where they are
    in no regular order."""
    if size == 1 or len(dims) == 1:
        return step * dims[0][1]
    each = 1
    for count, stride in reversed(dims):
        place = start // each % count
        if step % each == 0 and place + (size - 1) * (step // each) < count:
            return step // each * stride
        each *= count
    return None
