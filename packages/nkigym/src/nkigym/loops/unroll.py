"""peel and unroll: iterations written out beside the loop, or instead of it.

    for m in range(4):          f(0)
        f(m)              →     for m in range(1, 4):
                                    f(m)

Tiles that an iteration makes get names of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from neuroncore.program import Affine, Loop, Program
from nkigym.loops.held import held_in
from nkigym.loops.step import Path, Refused, Step
from nkigym.loops.template import Template
from nkigym.loops.transform import Taken, Transform
from nkigym.loops.tree import (
    Body,
    Names,
    loop_at,
    refuse_large,
    renamed,
    replaced,
    used_names,
)

WRITTEN_OUT = 8
"""The most iterations that `unroll` writes out."""


def _copies(program: Program, loop: Loop, count: int) -> Iterator[Body]:
    """The first iterations; the first of all keeps the names of its buffers."""
    used = Names(used_names(program))
    made = held_in(loop.body).buffers
    template = Template(loop.body, (loop.variable,), made)
    for value in loop.values[:count]:
        is_first = value == loop.start
        names = {name: name if is_first else used.unused(name) for name in made}
        yield template.written({loop.variable: Affine(value)}, names)


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
    made = held_in(loop.body).buffers
    used = Names(used_names(program))
    names = {name: used.unused(name) for name in made}
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
