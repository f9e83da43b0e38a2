"""All transforms by name; what can be done to a program, and doing it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from neuroncore.program import Allocate, Call, Loop, Program
from nkigym.loops.copies import BYPASS, DIRECT
from nkigym.loops.engine import ENGINE
from nkigym.loops.hoist import HOIST, SINK
from nkigym.loops.merge import MERGE
from nkigym.loops.narrow import NARROW
from nkigym.loops.order import DISTRIBUTE, JOIN, REORDER, SWAP
from nkigym.loops.pipeline import PIPELINE
from nkigym.loops.reuse import REUSE
from nkigym.loops.rfactor import RFACTOR
from nkigym.loops.slots import EXPAND, ROTATE
from nkigym.loops.split import FUSE, SPLIT
from nkigym.loops.step import Refused, Step
from nkigym.loops.transform import Taken, Transform
from nkigym.loops.tree import places, statement_at
from nkigym.loops.unroll import PEEL, UNROLL
from nkigym.loops.widen import WIDEN

TRANSFORMS: dict[str, Transform] = {
    t.name: t
    for t in (
        SPLIT,
        FUSE,
        REORDER,
        DISTRIBUTE,
        JOIN,
        EXPAND,
        ROTATE,
        HOIST,
        SINK,
        WIDEN,
        PEEL,
        UNROLL,
        ENGINE,
        REUSE,
        PIPELINE,
        BYPASS,
        DIRECT,
        SWAP,
        MERGE,
        RFACTOR,
        NARROW,
    )
}

_ON = {
    kind: tuple(t for t in TRANSFORMS.values() if kind in t.on) for kind in (Allocate, Call, Loop)
}


def opportunities(program: Program) -> tuple[Step, ...]:
    """Every step whose form fits the program: by place, then by transform, in a fixed order.

    Whether one keeps the kernel's meaning is found when it is applied.
    """
    return tuple(_options(program))


def _options(program: Program) -> Iterator[Step]:
    for at, statement in places(program):
        for transform in _ON[type(statement)]:
            yield from transform.options(program, at, statement)


def take(program: Program, step: Step) -> Taken:
    """The program after a step and what it claims. Raises Refused with the reason."""
    transform = TRANSFORMS.get(step.transform)
    if transform is None:
        raise Refused(f"there is no transform {step.transform}: {', '.join(TRANSFORMS)}", step)
    try:
        statement_at(program, step.at)
        return transform.take(program, step)
    except Refused as refused:
        refused.step = step
        raise


def apply(program: Program, step: Step) -> Program:
    """The program after a step; what the step does not concern is shared. Raises Refused."""
    return take(program, step).program


def replay(program: Program, schedule: Iterable[Step]) -> Program:
    """The program after all steps of a schedule. Raises Refused at the first that fails."""
    for step in schedule:
        program = apply(program, step)
    return program
