"""Transformations of loops: invariant calls leave them, narrow elementwise ones become wide calls.

Both expand buffers: [P, F] of a loop becomes [P, n, F]; what iteration i accessed is at place i.

Loop-invariant code motion: a call in inner loops whose operands do not depend on the loop around
them moves with these inner loops, where its expanded buffer fits in memory. Loads cross
outermost loops alone: published byte counters show no other moved (g0, k2 and n_matmul against
n_matmul_add_rmsnorm and n_rmsnorm_matmul in benchmarks/model).

Vectorization: an instruction that accesses k elements per partition in each of n iterations of an
innermost loop accesses n x k of them once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import prod

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
    map_accesses,
    walk,
)
from neuroncore.program.ir.traversal import Ranges
from neuroncore.timeline.compilation.rewriting import FreeMemory, Legality, read, written


@dataclass(frozen=True, slots=True)
class Expansion:
    """`buffer` with a place for every iteration of `loops`, the outermost first."""

    buffer: Buffer
    loops: Sequence[Loop]

    @property
    def places(self) -> int:
        return prod(loop.trips for loop in self.loops)

    def expanded(self) -> Buffer:
        """The buffer with all of its places."""
        first, *free = self.buffer.shape
        return replace(self.buffer, shape=(first, self.places, *free))

    def place(self) -> Affine:
        """The number of the iteration; of loops that count from 0 by 1."""
        number, size = Affine(), 1
        for loop in reversed(self.loops):
            number = number + Affine.variable(loop.variable, size)
            size *= loop.trips
        return number

    def access(self, old: Access) -> Access | None:
        """The access in its iteration's place; None where its strides cross partitions."""
        row, count = self.buffer.row, self.places
        if not self._is_plain(old):
            return None
        partition, free = divmod(old.offset.constant, row)
        offset = Affine(partition * row * count + free)
        for name, step in old.offset.terms:
            across = row > 1 and step % row == 0
            offset = offset + Affine.variable(name, step * count if across else step)
        strides = (old.strides[0] * count, *old.strides[1:])
        return replace(old, strides=strides, offset=offset + self.place() * row)

    def _is_plain(self, old: Access) -> bool:
        """Whether dimension 0 and some variables go over partitions, and all else inside them."""
        row, (first, *free) = self.buffer.row, old.strides
        steps = [*free, *(step for _, step in old.offset.terms if step % row)]
        stays = row == 1 or all(abs(step) < row for step in steps)
        return stays and first % row == 0 and old.indirect is None and old.dtype is None


def counts_from_zero(loop: Loop) -> bool:
    """Whether its variable is the number of the iteration."""
    return loop.start == 0 and loop.step == 1 and loop.trips > 0


MOST_STATEMENTS = 2000
"""Programs of more statements are left as they are: their loops were unrolled."""


def hoisted(program: Program, core: NeuronCore) -> Program:
    """The program with invariant calls before their loops, where their buffers fit in SBUF."""
    statements = list(walk(program.body))
    if len(statements) > MOST_STATEMENTS:
        return program
    for is_careful in (False, True):
        motion = _Motion(FreeMemory(program, core), Legality(program), is_careful)
        made = replace(program, body=tuple(motion.body(program.body, outermost=True)))
        if FreeMemory(program, core).contains(made):
            return made
    return program


@dataclass(slots=True)
class _Found:
    """An invariant call, the loops around it inside the loop that it leaves, its expansion."""

    call: Call
    loops: tuple[Loop, ...]
    expansion: Expansion


@dataclass(slots=True)
class _Motion:
    memory: FreeMemory
    legality: Legality
    is_careful: bool
    """Whether a buffer that lives longer counts as one more."""
    moved: set[str] = field(default_factory=set)
    """Buffers that grew: what reads them stays (m1 and m2 are slower than if it left too)."""

    def body(self, body: tuple[Statement, ...], outermost: bool) -> Iterator[Statement]:
        for statement in body:
            if not isinstance(statement, Loop):
                yield statement
                continue
            inner = replace(statement, body=tuple(self.body(statement.body, outermost=False)))
            while (found := self._next(inner, outermost)) is not None:
                yield from self._before(found)
                inner = _without(inner, found)
            yield inner

    def _next(self, loop: Loop, outermost: bool) -> _Found | None:
        """The first call that may leave the loop."""
        if loop.trips < 2:
            return None
        writes = Counter(name for call in calls(loop.body) for name in written(call))
        for found in _candidates(loop, ()):
            if self._may_leave(found, loop, writes, outermost):
                return found
        return None

    def _may_leave(self, found: _Found, loop: Loop, writes: Counter[str], outermost: bool) -> bool:
        call, expansion = found.call, found.expansion
        name = expansion.buffer.name
        if writes[name] != 1 or not self._is_fixed(call, loop, writes):
            return False
        if not self.legality.may_live_longer(name):
            return False
        if expansion.places == 1:
            return self._is_alone(found) and self.memory.take(
                expansion.buffer, int(self.is_careful)
            )
        if not outermost and call.is_dma:
            return False
        more = expansion.places - (not self.is_careful)
        return self._can_grow(loop, expansion) and self.memory.take(expansion.buffer, more)

    def _is_alone(self, found: _Found) -> bool:
        """Whether a call leaves without the loops inside: it does not depend on them."""
        used = {name for a in accesses(found.call) for name, _ in a.offset.terms}
        return used.isdisjoint(inner.variable for inner in found.loops)

    def _is_fixed(self, call: Call, loop: Loop, writes: Counter[str]) -> bool:
        """Whether every iteration of the loop does the same with the same."""
        needed = read(call)
        if any(writes[name] for name in needed) or self.moved.intersection(needed):
            return False
        moves = any(loop.variable in dict(a.offset.terms) for a in accesses(call))
        return not moves and self.legality.overwrites(call)

    def _can_grow(self, loop: Loop, expansion: Expansion) -> bool:
        name = expansion.buffer.name
        uses = [a for a in accesses(loop) if a.buffer == name]
        is_regular = all(counts_from_zero(each) for each in expansion.loops)
        is_regular &= expansion.buffer.space is MemorySpace.sbuf
        return is_regular and all(expansion.access(a) for a in uses)

    def _before(self, found: _Found) -> Iterator[Statement]:
        """Statements that move to the front of the loop."""
        expansion = found.expansion
        if expansion.places == 1:
            yield Allocate(expansion.buffer)
            yield found.call
            return
        self.moved.add(expansion.buffer.name)
        yield Allocate(expansion.expanded())
        statement: Statement = _expanded(found.call, expansion)
        for loop in reversed(found.loops):
            statement = replace(loop, body=(statement,))
        yield statement


def _candidates(loop: Loop, loops: tuple[Loop, ...]) -> Iterator[_Found]:
    """Calls that fill a buffer which is allocated in the loop, with the loops between."""
    own = {s.buffer.name: s.buffer for s in loop.body if isinstance(s, Allocate)}
    for statement in loop.body:
        if isinstance(statement, Loop):
            yield from _candidates(statement, (*loops, statement))
        elif isinstance(statement, Call) and (name := _filled(statement, own.keys())) is not None:
            yield _Found(statement, loops, Expansion(own[name], loops))


def _filled(call: Call, own: Set[str]) -> str | None:
    """The only buffer that the call writes, if it is one of `own`."""
    (name, *others) = {*written(call)} or {None}
    return None if name is None or others or name not in own else name


def _expanded(statement: Statement, expansion: Expansion) -> Statement:
    name = expansion.buffer.name

    def change(access: Access) -> Access:
        made = expansion.access(access) if access.buffer == name else access
        assert made is not None
        return made

    return map_accesses(statement, change)


def _without(loop: Loop, found: _Found) -> Loop:
    """The loop without the call and its buffer, whose uses go to their places."""
    name, grows = found.expansion.buffer.name, found.expansion.places > 1

    def rest(body: tuple[Statement, ...]) -> Iterator[Statement]:
        for statement in body:
            if isinstance(statement, Loop):
                if inner := tuple(rest(statement.body)):
                    yield replace(statement, body=inner)
            elif statement is not found.call and not allocates(statement, {name}):
                yield statement

    left = replace(loop, body=tuple(rest(loop.body)))
    if not grows:
        return left
    changed = _expanded(left, found.expansion)
    assert isinstance(changed, Loop)
    return changed


def allocates(statement: Statement, names: Set[str]) -> bool:
    """Whether it is where one of these buffers is made."""
    return isinstance(statement, Allocate) and statement.buffer.name in names


# -- vectorization ---------------------------------------------------------------------------------


WIDEST = 512
"""Elements per partition of the widest instruction that is made."""

ELEMENTWISE = frozenset({"tensor_tensor", "tensor_copy", "tensor_reduce"})


def vectorized(program: Program, core: NeuronCore) -> Program:
    """The program with its small elementwise loops as wide instructions."""
    making = _Vectorization(program, core)
    return replace(program, body=tuple(making.body(program.body, {})))


class _Vectorization:
    def __init__(self, program: Program, core: NeuronCore) -> None:
        self.legality, self.memory = Legality(program), FreeMemory(program, core)

    def body(self, body: tuple[Statement, ...], ranges: Ranges) -> Iterator[Statement]:
        for statement in body:
            if not isinstance(statement, Loop):
                yield statement
            elif ranges and _is_plain(statement) and (wide := self._wide(statement, ranges)):
                yield from wide
            else:
                inside = {**ranges, statement.variable: statement.values}
                yield replace(statement, body=tuple(self.body(statement.body, inside)))

    def _wide(self, loop: Loop, ranges: Ranges) -> list[Statement]:
        """Calls that do the work of all iterations; empty where some cannot be one instruction."""
        own = {s.buffer.name: s.buffer for s in loop.body if isinstance(s, Allocate)}
        made = [s for s in loop.body if isinstance(s, Call)]
        if not self.legality.may_live_longer(*{access.buffer for access in accesses(loop)}):
            return []
        expansions = {name: Expansion(buffer, (loop,)) for name, buffer in own.items()}
        wide = [*filter(None, (_wide_call(call, loop, expansions) for call in made))]
        expanded = [expansion.expanded() for expansion in expansions.values()]
        if len(wide) < len(made) or not self._is_legal(wide, ranges, expanded, own, loop.trips):
            return []
        return [*map(Allocate, expanded), *wide]

    def _is_legal(
        self, wide: Sequence[Call], ranges: Ranges, expanded: Sequence[Buffer],
        own: Mapping[str, Buffer], trips: int,
    ) -> bool:  # fmt: skip
        takes = all(self.legality.takes(call, ranges, expanded) for call in wide)
        fits = takes and all(self.memory.take(buffer, trips) for buffer in own.values())
        return fits and not _is_carried(wide, own)


def _is_plain(loop: Loop) -> bool:
    """Whether calls and allocations, nothing else, are made several times, counted from 0."""
    has_inner = any(isinstance(statement, Loop) for statement in loop.body)
    return loop.trips > 1 and counts_from_zero(loop) and not has_inner


def _is_carried(wide: Sequence[Call], own: Mapping[str, Buffer]) -> bool:
    """Whether an iteration may read what another one wrote, or write what another one writes."""
    changed = {name for call in wide for name in written(call)} - own.keys()
    return any(not changed.isdisjoint(read(call)) for call in wide) or any(
        _overlap([a for call in wide for a in _outputs(call) if a.buffer == name])
        for name in changed
    )


def _outputs(call: Call) -> Iterator[Access]:
    return (call.accesses[n] for n in call.record.outputs if n in call.accesses)


def _overlap(accesses: Sequence[Access]) -> bool:
    """Whether accesses to one buffer may name an element twice."""
    if len({(access.offset.terms, access.dtype) for access in accesses}) > 1:
        return True
    elements = np.concatenate([_elements(access) for access in accesses])
    return len(np.unique(elements)) < len(elements)


def _elements(access: Access) -> np.ndarray:
    """The elements of its buffer, while the loop variables are 0."""
    found = np.array([access.offset.constant])
    for size, stride in zip(access.shape, access.strides, strict=True):
        found = np.add.outer(found, stride * np.arange(size)).ravel()
    return found


def _wide_call(call: Call, loop: Loop, expansions: Mapping[str, Expansion]) -> Call | None:
    if call.instruction not in ELEMENTWISE:
        return None
    operands = dict(call.operands)
    for name, access in call.accesses.items():
        expansion = expansions.get(access.buffer)
        placed = access if expansion is None else expansion.access(access)
        wide = None if placed is None else _all_iterations(placed, loop)
        if wide is None:
            return None
        operands[name] = wide
    axis = call.attrs.get("axis")
    attrs = call.attrs if axis is None else {**call.attrs, "axis": _inner_axis(axis)}
    return replace(call, operands=operands, attrs=attrs)


def _inner_axis(axis: object) -> object:
    """The axis behind that of the iterations."""
    return tuple(a + 1 for a in axis) if isinstance(axis, tuple) else axis


def _all_iterations(access: Access, loop: Loop) -> Access | None:
    """The access of all iterations, their number its second dimension; None where too wide."""
    terms = dict(access.offset.terms)
    step = terms.pop(loop.variable, 0)
    first, *free = access.shape
    wide = replace(
        access,
        shape=(first, loop.trips, *free),
        strides=(access.strides[0], step, *access.strides[1:]),
        offset=replace(access.offset, terms=tuple(sorted(terms.items()))),
    )
    return wide if wide.size <= first * WIDEST and access.indirect is None else None
