"""Loops whose transfers are combined: one DMA moves the tiles of several iterations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from neuroncore.enums import MemorySpace
from neuroncore.integers.affine import Affine
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
    map_accesses,
    walk,
    whole,
)
from neuroncore.timeline import Expansion
from nki_scope.sections.program_changes import with_own_tiles

SMALL_BYTES = 64 * 1024
"""Transfers of fewer bytes spend most of their time on fixed costs."""
MOST_FREE_BYTES = 16 * 1024
"""Of a partition that the tiles of a combined transfer take."""
Body = Sequence[Statement]


def with_wide_transfers(program: Program, least_bytes: int) -> Program:
    """Loads and stores of tiles of a loop move several of them, before and after as many
    iterations; a DMA of parts that adjoin, or of parts of one tile, is that of all iterations,
    before or after the loop: of at most SMALL_BYTES where the loop has other calls.

    The tiles of several iterations have `least_bytes`, where the loop has as many iterations.
    """
    body, buffers = with_own_tiles(program.body), program.buffers()
    return replace(program, body=tuple(_body(body, buffers, least_bytes)))


def _body(body: Body, buffers: Mapping[str, Buffer], least_bytes: int) -> Iterator[Statement]:
    for statement in body:
        if not isinstance(statement, Loop):
            yield statement
            continue
        loop = replace(statement, body=tuple(_body(statement.body, buffers, least_bytes)))
        before, rest, after = _split(loop, buffers)
        yield from before
        yield from _blocked(rest, buffers, least_bytes) if rest.body else ()
        yield from after


def _split(
    loop: Loop, buffers: Mapping[str, Buffer]
) -> tuple[list[Statement], Loop, list[Statement]]:
    """Joined DMAs before the loop, the loop of all else, joined DMAs after it."""
    before: list[Statement] = []
    after: list[Statement] = []
    for call in [s for s in loop.body if isinstance(s, Call)]:
        joined = _joined(call, loop, buffers)
        if joined is None:
            continue
        source, others = joined.accesses["src"], tuple(s for s in loop.body if s is not call)
        buffer = buffers[source.buffer]
        is_small = not others or source.size * buffer.dtype.itemsize <= SMALL_BYTES
        if is_small and _may_leave(call, loop, buffer.space.on_chip):
            (after if buffer.space.on_chip else before).append(joined)
            loop = replace(loop, body=others)
    return before, loop, after


def _may_leave(call: Call, loop: Loop, is_last: bool) -> bool:
    """Whether the DMA of all iterations can be after the loop, or before it: the loop does not
    allocate its tile, and no other call accesses it in between."""
    own = {s.buffer.name for s in loop.body if isinstance(s, Allocate)}
    at = next(n for n, statement in enumerate(loop.body) if statement is call)
    others = ((n > at, c) for n, s in enumerate(loop.body) if n != at for c in calls((s,)))
    return own.isdisjoint(a.buffer for a in accesses(call)) and not any(
        _conflicts(call, other, is_later, is_last) for is_later, other in others
    )


def _conflicts(call: Call, other: Call, is_later: bool, is_last: bool) -> bool:
    """Whether a call of the loop writes what the DMA reads, or accesses what it writes; earlier
    ones may write what a store reads, later ones may read what a load writes."""
    source, target = (call.accesses[name].buffer for name in ("src", "dst"))
    is_written = source in _touched(other, True) and (is_later or not is_last)
    return is_written or target in _touched(other, is_later and not is_last)


def _step(access: Access, loop: Loop) -> int:
    """Elements from one iteration to the next."""
    return dict(access.offset.terms).get(loop.variable, 0) * loop.step


def _at(statement: Statement, loop: Loop, value: Affine) -> Statement:
    """The statement with a value for the variable of the loop."""
    return map_accesses(
        statement, lambda a: replace(a, offset=a.offset.substitute({loop.variable: value}))
    )


def _joined(call: Call, loop: Loop, buffers: Mapping[str, Buffer]) -> Call | None:
    """The DMA on what all iterations move, along an axis or as one more; None where there is none
    or the call is another."""
    if call.instruction != "dma_copy" or loop.trips < 2:
        return None
    moved = accesses(call)
    axes = set.intersection(*(_adjoining_axes(access, loop) for access in moved))
    if len({access.shape for access in moved}) > 1:
        axes &= {0}
    if axes:
        joined = map_accesses(call, lambda a: _longer(a, max(axes), loop.trips))
    elif all(_has_room(access, loop, buffers[access.buffer]) for access in moved):
        joined = map_accesses(call, lambda a: _several(a, loop.trips, _step(a, loop)))
    else:
        return None
    joined = _at(joined, loop, Affine(loop.start))
    assert isinstance(joined, Call)
    return joined


def _has_room(access: Access, loop: Loop, buffer: Buffer) -> bool:
    """Whether each iteration accesses a part of its own, on chip in the same partitions."""
    step = _step(access, loop)
    if access.indirect is not None or step <= 0:
        return False
    return not buffer.space.on_chip or step * loop.trips <= prod(buffer.shape[1:])


def _several(access: Access, times: int, step: int) -> Access:
    """As many accesses, each so many elements after the one before, as one."""
    shape, strides = (
        (first, more, *free)
        for (first, *free), more in ((access.shape, times), (access.strides, step))
    )
    return replace(access, shape=shape, strides=strides)


def _adjoining_axes(access: Access, loop: Loop) -> set[int]:
    """The axes along which an iteration goes on where the one before ended."""
    step, sizes = _step(access, loop), zip(access.shape, access.strides, strict=True)
    is_direct = access.indirect is None
    return {n for n, (size, stride) in enumerate(sizes) if is_direct and size * stride == step}


def _longer(access: Access, axis: int, times: int) -> Access:
    shape = (*access.shape[:axis], times * access.shape[axis], *access.shape[axis + 1 :])
    return replace(access, shape=shape)


@dataclass(frozen=True, slots=True)
class _Transfer:
    """A DMA between a whole tile of the loop and a part of HBM that each iteration has."""

    call: Call
    tile: Buffer
    is_load: bool

    @property
    def far(self) -> str:
        """The operand that is in HBM."""
        return "src" if self.is_load else "dst"

    def wide(self, loop: Loop, expansion: Expansion) -> Call:
        """The transfer of the tiles of `expansion`."""
        far = self.call.accesses[self.far]
        several = _several(far, expansion.places, _step(far, loop))
        near = "dst" if self.is_load else "src"
        operands = {self.far: several, near: whole(expansion.expanded())}
        return replace(self.call, operands={**self.call.operands, **operands})


def _transfers(loop: Loop, buffers: Mapping[str, Buffer]) -> Iterator[_Transfer]:
    own = {s.buffer.name: s.buffer for s in loop.body if isinstance(s, Allocate)}
    for call in loop.body:
        if isinstance(call, Call) and call.instruction == "dma_copy":
            for near in ("dst", "src"):
                tile = own.get(call.accesses[near].buffer)
                if tile and _is_whole_tile(call.accesses[near], tile):
                    found = _Transfer(call, tile, near == "dst")
                    if _is_disjoint(found, loop, buffers):
                        yield found


def _is_whole_tile(access: Access, tile: Buffer) -> bool:
    return access == whole(tile) and tile.space is MemorySpace.sbuf and tile.address is None


def _is_disjoint(transfer: _Transfer, loop: Loop, buffers: Mapping[str, Buffer]) -> bool:
    """Whether each iteration transfers a part of HBM that no other call of the loop accesses, or
    that all read alone."""
    far = transfer.call.accesses[transfer.far]
    in_hbm = far.buffer in buffers and not buffers[far.buffer].space.on_chip
    if not in_hbm or far.indirect is not None or _step(far, loop) == 0:
        return False
    others = (c for c in walk(loop.body) if isinstance(c, Call) and c is not transfer.call)
    return not any(far.buffer in _touched(call, transfer.is_load) for call in others)


def _touched(call: Call, writes_alone: bool) -> set[str]:
    """The buffers that a call accesses, or the ones that it writes."""
    outputs = call.record.outputs
    named = call.accesses.items()
    return {a.buffer for name, a in named if name in outputs or not writes_alone}


def _blocked(loop: Loop, buffers: Mapping[str, Buffer], least_bytes: int) -> Iterator[Statement]:
    """The loop over blocks of iterations, each between its combined transfers."""
    found = list(_transfers(loop, buffers))
    tiles = {each.tile.name: each.tile for each in found}
    inner = replace(
        loop, variable=f"{loop.variable}.each", start=0, step=1,
        stop=_iterations(loop, tiles.values(), least_bytes),
    )  # fmt: skip
    expansions = {name: Expansion(tile, (inner,)) for name, tile in tiles.items()}
    uses = [a for s in loop.body for a in accesses(s) if a.buffer in tiles]
    if inner.trips < 2 or not all(expansions[a.buffer].access(a) for a in uses):
        yield loop
        return
    block = tuple(_block(loop, inner, found, expansions))
    outer = replace(loop, step=loop.step * inner.trips, body=block)
    if outer.trips > 1:
        yield outer
    else:
        yield from (_at(s, loop, Affine(loop.start)) for s in block)


def _block(
    loop: Loop, inner: Loop, found: Sequence[_Transfer], expansions: Mapping[str, Expansion]
) -> Iterator[Statement]:
    """Tiles, loads, the iterations, stores."""
    wide = [(each, each.wide(loop, expansions[each.tile.name])) for each in found]
    single = {id(each.call) for each in found}
    index = Affine.variable(loop.variable) + Affine.variable(inner.variable, loop.step)

    def placed(access: Access) -> Access:
        expansion = expansions.get(access.buffer)
        return access if expansion is None else expansion.access(access) or access

    inside = [
        map_accesses(_at(s, loop, index), placed)
        for s in loop.body
        if id(s) not in single and not (isinstance(s, Allocate) and s.buffer.name in expansions)
    ]
    yield from (Allocate(each.expanded()) for each in expansions.values())
    yield from (call for each, call in wide if each.is_load)
    yield replace(inner, body=tuple(inside))
    yield from (call for each, call in wide if not each.is_load)


def _iterations(loop: Loop, tiles: Iterable[Buffer], least_bytes: int) -> int:
    """How many iterations share transfers: a divisor of all of them."""
    sizes = [(prod(tile.shape) * tile.dtype.itemsize, tile.free_bytes) for tile in tiles]
    if not sizes:
        return 1
    enough = max(-(-least_bytes // size) for size, _ in sizes)
    most = min(enough, *(MOST_FREE_BYTES // free for _, free in sizes))
    return max((n for n in range(1, most + 1) if loop.trips % n == 0), default=1)
