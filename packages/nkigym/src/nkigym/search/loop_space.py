"""Schedules of a kernel program as a space to search."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

from neuroncore.program import Program, walk
from nkigym import loops
from nkigym.loops import Refused, Step
from nkigym.search.form import form_digest
from nkigym.search.moves import Move, apply_move, moves
from nkigym.search.overlap import Overlap, apply_overlap, overlaps
from nkigym.search.pricing import Machine
from nkigym.search.roofline import WEIGHTS
from nkigym.search.space import Applied, Kinds, RefusedStepError

LONGER, LONGEST = 4, 64
"""A program may be so many times as long as the root, and so many statements more."""
_NUMBER = re.compile(r"\d+")

ALWAYS = frozenset({"dma", "sync", WEIGHTS})
"""What every kernel uses."""


KINDS = Kinds(
    first=("stage", "hoist", "reuse", "bypass", "direct", "drain"),
    then=("rotate", "engine", "widen", "merge", "lead", "trail"),
    some=(
        "split", "fuse", "reorder", "distribute", "join", "swap", "sink", "expand", "rfactor",
        "narrow",
    ),
    last=("overlap",),
)  # fmt: skip
"""What is written out comes last: nothing can be taken out of its loops any more."""

Offer = Step | Move | Overlap


class LoopSpace:
    """The programs that certified steps reach from a kernel program.

    engines: those that a program may use; None are all of them.
    """

    def __init__(self, program: Program, engines: frozenset[str] | None = None) -> None:
        self._root, self._engines = program, engines
        self._most = LONGER * self.statements(program) + LONGEST
        self._machine = Machine(program.target, program.nki)
        self._digest: tuple[Program, str] | None = None

    @property
    def name(self) -> str:
        return f"schedules of {self._root.name}"

    @property
    def root(self) -> Program:
        return self._root

    @property
    def kinds(self) -> Kinds:
        return KINDS

    def statements(self, state: Program) -> int:
        return sum(1 for _ in walk(state.body))

    def steps(self, state: Program) -> Sequence[Offer]:
        """Moves, then single steps."""
        return (*moves(state), *overlaps(state), *loops.opportunities(state))

    def apply(self, state: Program, step: Offer) -> Applied[Program]:
        try:
            if isinstance(step, Move):
                applied = Applied(*apply_move(state, step))
            elif isinstance(step, Overlap):
                applied = Applied(*apply_overlap(state, step, self._machine.rooflines))
            else:
                applied = Applied(loops.apply(state, step), (step,))
        except Refused as refused:
            raise RefusedStepError(f"{_name(step)}: {_kind(refused.reason)}") from None
        if self.statements(applied.state) > self._most:
            raise RefusedStepError(f"{_name(step)}: it becomes too long")
        return applied

    def kind(self, step: Offer) -> str:
        return _name(step)

    def family(self, step: Offer) -> Hashable:
        return _name(step), step.at

    def key(self, state: Program) -> Hashable:
        return self.digest(state)

    def illegal(self, state: Program) -> str | None:
        if self._engines is not None:
            used = self._machine.rooflines.of(state).keys() - ALWAYS
            if not used <= self._engines:
                return f"uses {', '.join(sorted(used - self._engines))}, which is not allowed"
        return self._machine.illegal(state)

    def over_capacity(self, state: Program) -> str | None:
        return self._machine.over_capacity(state)

    def bound_ns(self, state: Program) -> float:
        return self._machine.bound_ns(state)

    def price_ns(self, state: Program) -> float:
        return self._machine.price_ns(state)

    def digest(self, state: Program) -> str:
        if self._digest is None or self._digest[0] is not state:
            self._digest = state, form_digest(state)
        return self._digest[1]

    def write_step(self, single: Step) -> Any:
        return single.to_json()

    def read_step(self, given: Any) -> Step:
        try:
            return Step.from_json(given)
        except (Refused, TypeError, ValueError) as wrong:
            raise ValueError(str(wrong)) from None


def _kind(reason: str) -> str:
    """A reason without what only concerns this loop, so that reasons can be counted."""
    return _NUMBER.sub("N", reason.partition(":")[0].partition(" in loop ")[0])


def _name(step: Offer) -> str:
    return step.transform if isinstance(step, Step) else step.kind
