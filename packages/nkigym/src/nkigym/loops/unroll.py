"""peel and unroll: iterations written out beside the loop, or instead of it.

    for m in range(4):          f(0)
        f(m)              →     for m in range(1, 4):
                                    f(m)

Tiles that an iteration makes get names of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from neuroncore.program import Access, Affine, Allocate, Loop, Program, Statement, walk
from nkigym.loops.step import Path, Refused, Step
from nkigym.loops.transform import Taken, Transform
from nkigym.loops.tree import (
    Body,
    changed,
    loop_at,
    refuse_large,
    replaced,
    substituted,
    unused,
    used_names,
    with_body,
)

WRITTEN_OUT = 8
"""The most iterations that `unroll` writes out."""


def renamed(body: Body, names: dict[str, str]) -> Body:
    """The statements with buffers of other names."""

    def change(access: Access) -> Access:
        name = names.get(access.buffer)
        return access if name is None else replace(access, buffer=name)

    return tuple(_made_as(changed(s, change), names) for s in body)


def _made_as(statement: Statement, names: dict[str, str]) -> Statement:
    match statement:
        case Allocate(buffer) if buffer.name in names:
            return replace(statement, buffer=replace(buffer, name=names[buffer.name]))
        case Loop():
            return with_body(statement, tuple(_made_as(s, names) for s in statement.body))
    return statement


def _copies(program: Program, loop: Loop, count: int) -> Iterator[Body]:
    """The first iterations; the first of all keeps the names of its buffers."""
    used = used_names(program)
    made = [s.buffer.name for s in walk(loop.body) if isinstance(s, Allocate)]
    for value in loop.values[:count]:
        names = {}
        for name in made if value != loop.start else ():
            names[name] = unused(used, name)
        body = substituted(loop.body, {loop.variable: Affine(value)})
        yield renamed(body, names) if names else body


def _unroll(program: Program, step: Step) -> Taken:
    loop = loop_at(program, step.at)
    if loop.trips > WRITTEN_OUT:
        raise Refused(f"{loop.trips} iterations of {loop.variable} are more than {WRITTEN_OUT}")
    copies = _copies(program, loop, loop.trips)
    made = tuple(s for body in copies for s in body)
    return Taken(refuse_large(replaced(program, step.at, made)))


def _unrolls(program: Program, at: Path, loop: Loop) -> Iterator[Step]:
    if loop.trips <= WRITTEN_OUT:
        yield Step("unroll", at)


def _peel(program: Program, step: Step) -> Taken:
    loop = loop_at(program, step.at)
    if loop.trips < 2:
        raise Refused(f"loop {loop.variable} has one iteration")
    made = [s.buffer.name for s in walk(loop.body) if isinstance(s, Allocate)]
    used = used_names(program)
    names = {name: unused(used, name) for name in made}
    (first,) = _copies(program, loop, 1)
    rest = Loop(
        loop.variable, loop.start + loop.step, loop.stop, renamed(loop.body, names), loop.step,
        loop.origin,
    )  # fmt: skip
    return Taken(refuse_large(replaced(program, step.at, (*first, rest))))


def _peels(program: Program, at: Path, loop: Loop) -> Iterator[Step]:
    if loop.trips > 1:
        yield Step("peel", at)


UNROLL = Transform("unroll", "all iterations of a short loop written out", _unrolls, _unroll)
PEEL = Transform("peel", "the first iteration of a loop written out before it", _peels, _peel)
