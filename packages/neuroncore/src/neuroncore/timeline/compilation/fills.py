"""Fills that the closed compiler leaves out, because what they write is overwritten."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
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
    filled = fill.accesses["dst"]
    if not _is_plain(filled, {}):
        return False
    products = _Products(tile)
    products.elements(filled, {})[...] = False
    return products.cover(others, {})


def _is_plain(access: Access, values: Mapping[str, int]) -> bool:
    """Whether its elements are elements of its buffer, and known from these loop variables."""
    known = all(name in values for name, _ in access.offset.terms)
    return known and access.indirect is None and access.dtype is None


class _Products:
    """The elements of a tile that do not need its fill, as statements are executed."""

    def __init__(self, tile: Buffer) -> None:
        self.tile = tile.name
        self.defined = np.ones(tile.size, np.bool_)

    def elements(self, access: Access, values: Mapping[str, int]) -> np.ndarray:
        """The flags of a plain access."""
        first = self.defined[access.offset.value(values) :]
        return np.lib.stride_tricks.as_strided(first, access.shape, access.strides)

    def cover(self, body: Sequence[Statement], values: Mapping[str, int]) -> bool:
        """Whether every element is defined when it is read."""
        return all(
            self._loop(s, values) if isinstance(s, Loop) else self._call(s, values)
            for s in body
            if not isinstance(s, Allocate)
        )

    def _loop(self, loop: Loop, values: Mapping[str, int]) -> bool:
        """Iterations that access the same elements are one: what is defined stays defined."""
        mine = [access for access in accesses(loop) if access.buffer == self.tile]
        if not mine or not loop.trips:
            return True
        moves = any(loop.variable in dict(access.offset.terms) for access in mine)
        trips = loop.values if moves else loop.values[:1]
        return all(self.cover(loop.body, {**values, loop.variable: trip}) for trip in trips)

    def _call(self, call: Call, values: Mapping[str, int]) -> bool:
        mine = [access for access in accesses(call) if access.buffer == self.tile]
        if not all(_is_plain(access, values) for access in mine):
            return False
        adds = call.attrs.get("accumulate") is True
        made = [a for a in map(call.accesses.get, call.record.outputs) if a in mine]
        needed = mine if adds else [a for a in mine if not any(a is each for each in made)]
        is_there = all(self.elements(access, values).all() for access in needed)
        for access in filter(None, made):
            self.elements(access, values)[...] = True
        return is_there


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
    filled, over = fill.accesses.get("dst"), load.accesses.get("dst")
    if fill.instruction != "memset" or filled is None or over is None:
        yield fill
        return
    first, columns = over.offset.constant, filled.shape[-1]
    is_all = len(filled.shape) > 1 and filled == whole(legality.buffers[filled.buffer])
    is_over = is_all and over == _columns(filled, first, over.shape[-1])
    if not is_over or filled.buffer in read(load) or not legality.overwrites(load):
        yield fill
        return
    for at, count in ((0, first), (first + over.shape[-1], columns - first - over.shape[-1])):
        if count:
            part = {**fill.operands, "dst": _columns(filled, at, count)}
            yield replace(fill, operands=part)


def _columns(access: Access, first: int, count: int) -> Access:
    return replace(access, shape=(*access.shape[:-1], count), offset=Affine(first))
