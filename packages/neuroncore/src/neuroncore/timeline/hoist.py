"""What the compiler takes out of loops: calls that do the same in every iteration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from neuroncore.program import Allocate, Call, Loop, Program, Statement, accesses, calls, walk


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
    inside = {s.variable for s in walk((loop,)) if isinstance(s, Loop)}
    fixed: dict[str, list[Statement]] = {}
    for call in loop.body:
        if not isinstance(call, Call):
            continue
        used = {access.buffer for access in accesses(call)}
        written = set(_written(call))
        reads = used - written
        moves = any(name in inside for a in accesses(call) for name, _ in a.offset.terms)
        alone = len(written) == 1 and written <= own.keys() and writes[next(iter(written))] == 1
        steady = all(not writes[name] or name in fixed for name in reads)
        if alone and steady and not moves and not _reads_what_it_writes(call):
            (name,) = written
            fixed[name] = [own[name], call]
    return [statement for pair in fixed.values() for statement in pair]


def _written(call: Call) -> list[str]:
    return [call.accesses[n].buffer for n in call.record.outputs if n in call.accesses]


def _reads_what_it_writes(call: Call) -> bool:
    outputs = call.record.outputs
    read = {access.buffer for name, access in call.accesses.items() if name not in outputs}
    return bool(read & set(_written(call))) or call.attrs.get("accumulate", False) is not False
