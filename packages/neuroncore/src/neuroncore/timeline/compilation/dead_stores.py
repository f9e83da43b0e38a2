"""Dead stores: fills whose elements are written again before they are read.

DefinedElements follows which elements of a tile are defined, as statements are executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from neuroncore.enums import MemorySpace
from neuroncore.integers.affine import Affine
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
from neuroncore.timeline.compilation.rewriting import Legality, read, written

# -- defined elements ------------------------------------------------------------------------------


MOST_CALLS = 10_000
"""Calls that are followed for one tile; behind them nothing is known."""


class DefinedElements:
    """Which elements of a tile are defined; `defines`: whether a call defines its outputs without
    reading them.
    """

    def __init__(self, tile: Buffer, defines: Callable[[Call], bool], are_defined: bool) -> None:
        self.tile, self.defines = tile, defines
        self._flags = np.full(tile.size, are_defined)
        self._left = MOST_CALLS

    def mark(self, access: Access, are_defined: bool) -> bool:
        """Say what the elements of an access are; False where they are not known."""
        return self._mark(access, {}, are_defined)

    def cover(self, body: Sequence[Statement]) -> bool:
        """Whether every element is defined when these statements read it."""
        return self._block(body, {})

    def _block(self, body: Sequence[Statement], values: Mapping[str, int]) -> bool:
        return all(
            self._loop(s, values) if isinstance(s, Loop) else self._call(s, values)
            for s in body
            if not isinstance(s, Allocate)
        )

    def _loop(self, loop: Loop, values: Mapping[str, int]) -> bool:
        """Iterations that access the same elements are one: what is defined stays defined."""
        mine = [access for access in accesses(loop) if access.buffer == self.tile.name]
        if not mine or not loop.trips:
            return True
        moves = any(loop.variable in dict(access.offset.terms) for access in mine)
        trips = loop.values if moves else loop.values[:1]
        return all(self._block(loop.body, {**values, loop.variable: trip}) for trip in trips)

    def _call(self, call: Call, values: Mapping[str, int]) -> bool:
        mine = [access for access in accesses(call) if access.buffer == self.tile.name]
        self._left -= bool(mine)
        made = [a for a in mine if self.defines(call) and _is_output(a, call)]
        needed = [a for a in mine if not any(a is each for each in made)]
        are_there = all(self._are_defined(access, values) for access in needed)
        return self._left >= 0 and are_there and all(self._mark(a, values, True) for a in made)

    def _are_defined(self, access: Access, values: Mapping[str, int]) -> bool:
        elements = self._elements(access, values)
        return elements is not None and bool(elements.all())

    def _mark(self, access: Access, values: Mapping[str, int], are_defined: bool) -> bool:
        elements = self._elements(access, values)
        if elements is None:
            return False
        elements[...] = are_defined
        return True

    def _elements(self, access: Access, values: Mapping[str, int]) -> np.ndarray | None:
        """The flags of an access; None where its elements are not the tile's, or not known."""
        known = all(name in values for name, _ in access.offset.terms)
        if not known or access.indirect is not None or access.dtype is not None:
            return None
        first = self._flags[access.offset.value(values) :]
        return np.lib.stride_tricks.as_strided(first, access.shape, access.strides)


def _is_output(access: Access, call: Call) -> bool:
    return any(call.accesses.get(name) is access for name in call.record.outputs)


# -- zeros of PSUM -------------------------------------------------------------------------------


def without_dead_fills(program: Program, core: NeuronCore) -> Program:
    """Without zeros of PSUM to which matmuls add: the first product of a new tile overwrites.

    A fill is dead where the tile is new, so that nothing was accumulated in it before, and where
    products are written to all elements of it before they are read.
    """
    buffers = program.buffers()
    writers: dict[str, set[str]] = {}
    for call in calls(program.body):
        for name in written(call):
            writers.setdefault(name, set()).add(call.instruction)
    summed = {name for name, by in writers.items() if by == {"memset", "nc_matmul"}}
    tiles = {n for n in summed if buffers[n].space is MemorySpace.psum and not buffers[n].address}
    return replace(program, body=tuple(_without_dead(program.body, tiles))) if tiles else program


def _without_dead(body: tuple[Statement, ...], tiles: Set[str]) -> Iterator[Statement]:
    dead = {id(fill) for fill in _dead_fills(body, tiles)}
    for statement in body:
        if isinstance(statement, Loop):
            yield replace(statement, body=tuple(_without_dead(statement.body, tiles)))
        elif id(statement) not in dead:
            yield statement


def _dead_fills(body: tuple[Statement, ...], tiles: Set[str]) -> Iterator[Call]:
    """The dead fills of tiles that are allocated right here."""
    users: dict[str, list[Statement]] = {}
    for statement in body:
        for name in {access.buffer for access in accesses(statement)} & tiles:
            users.setdefault(name, []).append(statement)
    for statement in body:
        if isinstance(statement, Allocate) and statement.buffer.name in tiles:
            fill, *others = users[statement.buffer.name]
            if isinstance(fill, Call) and _are_summed(fill, others, statement.buffer):
                yield fill


def _are_summed(fill: Call, others: Sequence[Statement], tile: Buffer) -> bool:
    """Whether the others, in order, write products to all zeros of a new tile that they read."""
    if fill.instruction != "memset" or fill.operands["value"] != 0:
        return False
    found = DefinedElements(tile, _overwrites_new_tiles, are_defined=True)
    return found.mark(fill.accesses["dst"], are_defined=False) and found.cover(others)


def _overwrites_new_tiles(call: Call) -> bool:
    return call.attrs.get("accumulate") is not True


# -- tiles that are loaded in part ---------------------------------------------------------------


def without_overwritten_fills(program: Program, core: NeuronCore) -> Program:
    """Of a fill of which a DMA overwrites columns next, the columns on both sides."""
    legality = Legality(program)
    return replace(program, body=tuple(_shortened(program.body, legality)))


def _shortened(body: tuple[Statement, ...], legality: Legality) -> Iterator[Statement]:
    for statement, after in zip(body, (*body[1:], None), strict=True):
        if isinstance(statement, Loop):
            yield replace(statement, body=tuple(_shortened(statement.body, legality)))
        elif isinstance(statement, Call) and isinstance(after, Call) and after.is_dma:
            yield from _beside(statement, after, legality)
        else:
            yield statement


def _beside(fill: Call, load: Call, legality: Legality) -> Iterator[Call]:
    """The fill, or the parts of it that the load does not overwrite."""
    if fill.instruction != "memset" or not _is_over(fill, load, legality):
        yield fill
        return
    filled, over = fill.accesses["dst"], load.accesses["dst"]
    first, behind = over.offset.constant, over.offset.constant + over.shape[-1]
    for at, count in ((0, first), (behind, filled.shape[-1] - behind)):
        if count:
            part = {**fill.operands, "dst": _columns(filled, at, count)}
            yield replace(fill, operands=part)


def _is_over(fill: Call, load: Call, legality: Legality) -> bool:
    """Whether a load overwrites columns of a tile, all of which a call fills, and reads none."""
    filled, over = fill.accesses["dst"], load.accesses.get("dst")
    is_all = len(filled.shape) > 1 and filled == whole(legality.buffers[filled.buffer])
    if over is None or not is_all or filled.buffer in read(load):
        return False
    columns = _columns(filled, over.offset.constant, over.shape[-1])
    return over == columns and legality.overwrites(load)


def _columns(access: Access, first: int, count: int) -> Access:
    return replace(access, shape=(*access.shape[:-1], count), offset=Affine(first))
