"""Causes of waiting, and changes of programs that take them away; statements by their id."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle

from neuroncore.enums import Engine
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
)
from neuroncore.timeline import hoisted
from nki_dtypes import DType

Body = tuple[Statement, ...]
ChangeOfProgram = Callable[[Program], Program]
ChangeOfStatement = Callable[[Statement], Sequence[Statement]]
PARTITIONS = 128


@dataclass(frozen=True, slots=True)
class Cause:
    """A cause of waiting, the calls that have it, and the experiment without it."""

    title: str
    text: str
    experiment: str
    calls: Sequence[Call]
    zeros: tuple[str, ...] = ()
    """Constants of the model that become 0."""
    change: ChangeOfProgram | None = None
    automatic: bool = False
    """Whether a toolchain may do it: it is not worth naming where it gains nothing."""
    is_bound: bool = False
    """Whether no cure of a program is played: the gain of the experiment is the most possible."""


def place_of(call: Call) -> Hashable:
    """What a call and the ones that a toolchain makes of it have in common."""
    return call.origin or (call.instruction, call.name)


def _of_body(change: Callable[[Body], Iterator[Statement]]) -> ChangeOfProgram:
    return lambda program: replace(program, body=tuple(change(program.body)))


def each(chosen: Collection[int], change: ChangeOfStatement) -> ChangeOfProgram:
    """Every statement of `chosen` is changed."""
    return _of_body(lambda body: _each(body, chosen, change))


def _each(body: Body, chosen: Collection[int], change: ChangeOfStatement) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, Loop):
            yield replace(statement, body=tuple(_each(statement.body, chosen, change)))
        elif id(statement) in chosen:
            yield from change(statement)
        else:
            yield statement


def left_out(statement: Statement) -> Sequence[Statement]:
    """No call: what reads its results finds them ready."""
    return ()


def on_engine(engine: Engine, statement: Statement) -> Sequence[Statement]:
    """The call on an engine."""
    assert isinstance(statement, Call)
    return (replace(statement, attrs={**statement.attrs, "engine": engine}),)


def with_dtype(dtype: DType, statement: Statement) -> Sequence[Statement]:
    """The allocation of a buffer of another dtype."""
    assert isinstance(statement, Allocate)
    return (replace(statement, buffer=replace(statement.buffer, dtype=dtype)),)


def on_all_partitions(statement: Statement) -> Sequence[Statement]:
    """The call on as many elements, spread over all partitions."""
    return (map_accesses(statement, _spread),)


def _spread(access: Access) -> Access:
    partitions, *free = access.shape
    longest = free.index(max(free))
    free[longest] = max(1, free[longest] * partitions // PARTITIONS)
    return replace(access, shape=(partitions, *free))


def loaded_once(program: Program) -> Program:
    """Calls that do the same in every iteration are before their loop, as are their tiles."""
    own = replace(program, body=with_own_tiles(program.body))
    return hoisted(own, NeuronCore(program.target, watchers=()))


def spread(program: Program) -> Program:
    """Loops have four iterations in one, each with calls and tiles of its own."""
    for _ in range(2):
        program = _with_two_iterations(program, _tiles_and_transfers)
    return program


def _tiles_and_transfers(body: Body) -> Sequence[Statement]:
    return [*_tiles(body), *(s for s in body if isinstance(s, Call) and s.is_dma)]


def without_generators(program: Program) -> Program:
    """DMAs of known addresses have descriptors that are made before the kernel runs."""
    found = {id(call) for call in calls(program.body) if call.is_dma and has_known_addresses(call)}
    return each(found, _without_generator)(program)


def has_known_addresses(call: Call) -> bool:
    """Whether no access of a DMA depends on values that the kernel computes."""
    return all(access.indirect is None for access in call.accesses.values())


def _without_generator(statement: Statement) -> Sequence[Statement]:
    assert isinstance(statement, Call)
    own = {n: v for n, v in statement.attrs.items() if n not in ("dge_mode", "engine")}
    return (replace(statement, attrs=own),)


def alternated(chosen: Sequence[Call], change: ChangeOfStatement) -> ChangeOfProgram:
    """Every other call of `chosen` is changed; a loop around some has two iterations in one, each
    with tiles of its own."""
    ids = set(map(id, chosen))
    return _of_body(lambda body: _alternated(body, ids, change))


def _alternated(
    body: Body, chosen: Collection[int], change: ChangeOfStatement
) -> Iterator[Statement]:
    turns = cycle((False, True))

    def changed(statement: Statement) -> Sequence[Statement]:
        return change(statement) if id(statement) in chosen else (statement,)

    for statement in body:
        if isinstance(statement, Loop):
            if any(id(inner) in chosen for inner in statement.body):
                own = _second_tiles(statement.body)
                yield from _doubled(
                    statement, lambda s, own=own: [n for c in changed(s) for n in _renamed(own, c)]
                )
            else:
                yield replace(statement, body=tuple(_alternated(statement.body, chosen, change)))
        elif id(statement) in chosen and next(turns):
            yield from change(statement)
        else:
            yield statement


def _doubled(loop: Loop, change: ChangeOfStatement) -> Iterator[Loop]:
    """Two iterations in one, the second one changed; the last of an odd number by itself."""
    later = {loop.variable: Affine.variable(loop.variable) + loop.step}
    until = loop.start + loop.trips // 2 * 2 * loop.step

    def moved(access: Access) -> Access:
        return replace(access, offset=access.offset.substitute(later))

    second = [map_accesses(s, moved) for statement in loop.body for s in change(statement)]
    if loop.trips > 1:
        yield replace(loop, stop=until, step=2 * loop.step, body=(*loop.body, *second))
    if loop.trips % 2:
        yield replace(loop, start=until)


def rotated(program: Program) -> Program:
    """Every tile of a loop has a second place, for every other iteration.

    A tile that is allocated before a loop and written anew by each iteration is one of the loop.
    """
    return _with_two_iterations(program, _tiles)


def _with_two_iterations(program: Program, of: Callable[[Body], Sequence[Statement]]) -> Program:
    """Loops around such statements have two iterations in one, each with tiles of its own."""
    return replace(program, body=tuple(_rotated(with_own_tiles(program.body), of)))


def with_own_tiles(body: Body) -> Body:
    """Allocations move into the loop that alone uses them, where it needs nothing from before."""
    users: dict[str, list[Statement]] = {}
    for statement in body:
        for name in {access.buffer for access in accesses(statement)}:
            users.setdefault(name, []).append(statement)
    moved: dict[int, list[Statement]] = {}
    for statement in _tiles(body):
        match users.get(statement.buffer.name):
            case [Loop() as loop] if _begins_anew(loop, statement.buffer):
                moved.setdefault(id(loop), []).append(statement)
    gone = {id(each) for several in moved.values() for each in several}
    return tuple(
        replace(s, body=with_own_tiles((*moved.get(id(s), ()), *s.body)))
        if isinstance(s, Loop)
        else s
        for s in body
        if id(s) not in gone
    )


def _tiles(body: Body) -> list[Allocate]:
    """Allocations on chip without a fixed address."""
    made = [s for s in body if isinstance(s, Allocate)]
    return [s for s in made if s.buffer.space.on_chip and s.buffer.address is None]


def _accesses(statement: Statement, buffer: Buffer) -> bool:
    return any(access.buffer == buffer.name for access in accesses(statement))


def _begins_anew(loop: Loop, buffer: Buffer) -> bool:
    """Whether an iteration writes all of the buffer before it reads any."""
    first = next(call for call in calls(loop.body) if _accesses(call, buffer))
    named = {n: a for n, a in first.accesses.items() if a.buffer == buffer.name}
    return first.attrs.get("accumulate", False) is False and all(
        name in first.record.outputs and access.size == buffer.size
        for name, access in named.items()
    )


def _rotated(body: Body, of: Callable[[Body], Sequence[Statement]]) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, Loop):
            inner = replace(statement, body=tuple(_rotated(statement.body, of)))
            second = partial(_renamed, _second_tiles(inner.body))
            yield from _doubled(inner, second) if of(inner.body) else (inner,)
        else:
            yield statement


def _second_tiles(body: Body) -> dict[str, str]:
    """The tiles of a body, and a name for a second one of each."""
    tiles = [s.buffer.name for s in _tiles(body)]
    return {name: f"{name}.{len(tiles) + 1}" for name in tiles}


def _renamed(names: Mapping[str, str], statement: Statement) -> Sequence[Statement]:
    def name(of: str) -> str:
        return names.get(of, of)

    if isinstance(statement, Allocate):
        buffer = replace(statement.buffer, name=name(statement.buffer.name))
        return (replace(statement, buffer=buffer),)
    return (map_accesses(statement, lambda a: replace(a, buffer=name(a.buffer))),)
