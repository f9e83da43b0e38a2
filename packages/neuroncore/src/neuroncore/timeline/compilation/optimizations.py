"""What the closed compiler is known to do: hoisting, copies of buffers, shares of engines.

- Calls that do the same in every iteration leave their loops.
- A buffer that is allocated inside a loop is a new one in every iteration; the compiler gives it as
  many places as the memory has room for, up to one per DMA queue. Outermost loops follow one
  another, so each has the memory to itself but for what is allocated outside of loops.
- Calls that VectorE and ScalarE can both execute are dealt out once, the longest (times its
  iterations) first, each to the engine that would then be done first with everything it has. This
  is a deliberately simple model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from neuroncore.enums import MemorySpace
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
    walk,
)
from neuroncore.timeline.model.clock import Clock
from neuroncore.timeline.model.lanes import LANE
from neuroncore.work import Pass


def hoisted(program: Program) -> Program:
    """The program with loop-invariant calls, and the buffers that they fill, before their loops."""
    return replace(program, body=tuple(_body(program.body)))


def _body(body: tuple[Statement, ...]) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, Loop):
            inner = replace(statement, body=tuple(_body(statement.body)))
            out = _invariant(inner)
            yield from out
            moved = set(map(id, out))
            yield replace(inner, body=tuple(s for s in inner.body if id(s) not in moved))
        else:
            yield statement


def _invariant(loop: Loop) -> list[Statement]:
    """Allocations and calls of the loop's own body that may stand before it, in order."""
    if loop.trips < 2:
        return []
    writes = Counter(name for call in calls(loop.body) for name in _written(call))
    own = {s.buffer.name: s for s in loop.body if isinstance(s, Allocate)}
    variables = {s.variable for s in walk((loop,)) if isinstance(s, Loop)}
    fixed: dict[str, list[Statement]] = {}
    for call in loop.body:
        if not isinstance(call, Call) or _moves(call, variables):
            continue
        name = _filled(call, own.keys(), writes)
        changing = writes.keys() - fixed.keys() - {name}
        if name is not None and not any(a.buffer in changing for a in accesses(call)):
            fixed[name] = [own[name], call]
    return [statement for pair in fixed.values() for statement in pair]


def _filled(call: Call, own: Set[str], writes: Mapping[str, int]) -> str | None:
    """The only buffer that the call writes, if it is one of `own`, which no other call writes and
    this one does not read.
    """
    (name, *others) = {*_written(call)} or {None}
    if name is None or others or name not in own or writes[name] != 1:
        return None
    return None if _reads_what_it_writes(call) else name


def _moves(call: Call, variables: Set[str]) -> bool:
    """Whether an access of the call depends on one of the loop variables."""
    return any(name in variables for a in accesses(call) for name, _ in a.offset.terms)


def _written(call: Call) -> list[str]:
    return [call.accesses[n].buffer for n in call.record.outputs if n in call.accesses]


def _reads_what_it_writes(call: Call) -> bool:
    outputs = call.record.outputs
    read = {access.buffer for name, access in call.accesses.items() if name not in outputs}
    return bool(read & set(_written(call))) or call.attrs.get("accumulate", False) is not False


def copies(program: Program, core: NeuronCore, most: int) -> dict[str, int]:
    """Buffer → how many copies of it take turns."""
    found: dict[str, int] = {}
    for space in (MemorySpace.sbuf, MemorySpace.psum):
        room = core.free_bytes_of(space) - sum(b.free_bytes for b in _buffers(program.body, space))
        for loop in program.body:
            if not isinstance(loop, Loop):
                continue
            rotating = [b for b in _inside(loop, space) if b.address is None]
            size = sum(buffer.free_bytes for buffer in rotating)
            number = max(1, min(most, room // size)) if size else 1
            found |= {buffer.name: number for buffer in rotating}
    return found


def _inside(loop: Loop, space: MemorySpace) -> Iterator[Buffer]:
    return _buffers(tuple(walk(loop.body)), space)


def _buffers(body: tuple[Statement, ...], space: MemorySpace) -> Iterator[Buffer]:
    """The buffers of `space` that are allocated right here."""
    for statement in body:
        if isinstance(statement, Allocate) and statement.buffer.space is space:
            yield statement.buffer


def dealt_out(
    body: tuple[Statement, ...],
    clock: Clock,
    ways: Mapping[int, Sequence[Pass]],
) -> dict[int, int]:
    """Call (by id) → which of its `ways` to take; the first is what the call does as written."""
    weights = dict(_iterations(body, 1))
    load: dict[int, float] = {}
    open_calls = []
    for call, trips in weights.items():
        each = [
            (LANE[op.engine], clock.cycles(LANE[op.engine], op.interval))
            for op in ways.get(call, ())
        ]
        if len(each) == 1:
            lane, ticks = each[0]
            load[lane] = load.get(lane, 0) + ticks * trips
        elif each:
            open_calls.append((trips, call, each))
    chosen: dict[int, int] = {}
    for trips, call, each in sorted(open_calls, key=lambda c: -c[0] * max(t for _, t in c[2])):
        done = [load.get(lane, 0) + ticks * trips for lane, ticks in each]
        chosen[call] = way = done.index(min(done))
        load[each[way][0]] = done[way]
    return chosen


def _iterations(body: tuple[Statement, ...], trips: int) -> Iterator[tuple[int, int]]:
    """Every call, by id, and how often it is executed."""
    for statement in body:
        if isinstance(statement, Loop):
            yield from _iterations(statement.body, trips * statement.trips)
        elif isinstance(statement, Call):
            yield id(statement), trips
