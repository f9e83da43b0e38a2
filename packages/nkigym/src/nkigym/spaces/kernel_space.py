"""Schedules of a kernel program as a space to search."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

from neuroncore.program import Program, walk
from nkigym import transforms
from nkigym.analysis.roofline import WEIGHTS
from nkigym.kernels.digest import structural_digest
from nkigym.search.protocol import Applied, RejectedStepError, StepKinds
from nkigym.spaces.composite_steps import (
    BalancedPipeline,
    CompositeStep,
    apply_balanced_pipeline,
    apply_composite,
    balanced_pipelines,
    composite_steps,
)
from nkigym.spaces.cost_model import KernelCosts
from nkigym.transforms import TransformError, TransformStep

LONGER, LONGEST = 4, 64
"""A program may be so many times as long as the root, and so many statements more."""
_NUMBER = re.compile(r"\d+")

ALWAYS = frozenset({"dma", "sync", WEIGHTS})
"""What every kernel uses."""


KINDS = StepKinds(
    first=("stage", "hoist", "reuse", "bypass", "direct", "drain"),
    then=("rotate", "engine", "widen", "merge", "lead", "trail"),
    some=(
        "split", "fuse", "reorder", "distribute", "join", "swap", "sink", "expand", "rfactor",
        "narrow",
    ),
    last=("overlap",),
)  # fmt: skip
"""What is written out comes last: nothing can be taken out of its loops any more."""

Offer = TransformStep | CompositeStep | BalancedPipeline


class LoopSpace(KernelCosts[Program]):
    """The programs that certified steps reach from a kernel program.

    engines: the engines that a program may use; None for all.
    """

    def __init__(self, program: Program, engines: frozenset[str] | None = None) -> None:
        super().__init__(program.target, program.nki)
        self._root, self._engines = program, engines
        self._most = LONGER * self.statements(program) + LONGEST
        self._digest: tuple[Program, str] | None = None

    @property
    def name(self) -> str:
        return f"schedules of {self._root.name}"

    @property
    def root(self) -> Program:
        return self._root

    @property
    def kinds(self) -> StepKinds:
        return KINDS

    def kernel(self, state: Program) -> Program:
        return state

    def statements(self, state: Program) -> int:
        return sum(1 for _ in walk(state.body))

    def steps(self, state: Program) -> Sequence[Offer]:
        """Moves, then single steps."""
        return (
            *composite_steps(state),
            *balanced_pipelines(state),
            *transforms.opportunities(state),
        )

    def apply(self, state: Program, step: Offer) -> Applied[Program]:
        try:
            if isinstance(step, CompositeStep):
                applied = Applied(*apply_composite(state, step))
            elif isinstance(step, BalancedPipeline):
                applied = Applied(*apply_balanced_pipeline(state, step, self.rooflines))
            else:
                applied = Applied(transforms.apply(state, step), (step,))
        except TransformError as rejected:
            raise RejectedStepError(f"{_name(step)}: {_kind(rejected.reason)}") from None
        if self.statements(applied.state) > self._most:
            raise RejectedStepError(f"{_name(step)}: it becomes too long")
        return applied

    def kind(self, step: Offer) -> str:
        return _name(step)

    def family(self, step: Offer) -> Hashable:
        return _name(step), step.at

    def key(self, state: Program) -> Hashable:
        return self.digest(state)

    def illegal(self, state: Program) -> str | None:
        if self._engines is not None:
            used = self.rooflines.of(state).keys() - ALWAYS
            if not used <= self._engines:
                return f"uses {', '.join(sorted(used - self._engines))}, which is not allowed"
        return super().illegal(state)

    def digest(self, state: Program) -> str:
        if self._digest is None or self._digest[0] is not state:
            self._digest = state, structural_digest(state)
        return self._digest[1]

    def write_step(self, single: TransformStep) -> Any:
        return single.to_json()

    def read_step(self, given: Any) -> TransformStep:
        try:
            return TransformStep.from_json(given)
        except (TransformError, TypeError, ValueError) as wrong:
            raise ValueError(str(wrong)) from None


def _kind(reason: str) -> str:
    """A reason without what only concerns this loop, so that reasons can be counted."""
    return _NUMBER.sub("N", reason.partition(":")[0].partition(" in loop ")[0])


def _name(step: Offer) -> str:
    return step.transform if isinstance(step, TransformStep) else step.kind
