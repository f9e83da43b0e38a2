"""Schedules of a kernel program as a space to search."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from neuroncore.program import (
    Access,
    Affine,
    Allocate,
    Buffer,
    Call,
    Loop,
    Program,
    Statement,
    walk,
)
from nkigym import transforms
from nkigym.analysis.roofline import WEIGHTS
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


# -- the key of a program --------------------------------------------------------------------------


def structural_digest(program: Program) -> str:
    """Equal for programs that differ in names of buffers and loop variables and in source lines
    alone; the same in every process.
    """
    return sha256(repr(_Numbering().program(program)).encode()).hexdigest()


@dataclass(slots=True)
class _Numbering:
    """Names as numbers, in the order in which they appear."""

    numbers: dict[str, int] = field(default_factory=dict)

    def program(self, program: Program) -> Any:
        parameters = [self.buffer(buffer) for buffer in program.parameters]
        body = list(self.body(program.body))
        results = [self.number(name) for name in program.results]
        return program.target, program.nki, parameters, body, results

    def number(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))

    def new(self, name: str) -> int:
        """A name that means something else from here on."""
        self.numbers[name] = len(self.numbers)
        return self.numbers[name]

    def body(self, body: tuple[Statement, ...]) -> Iterator[Any]:
        for statement in body:
            match statement:
                case Loop(variable, start, stop, inside, step):
                    yield self.new(variable), start, stop, step, list(self.body(inside))
                case Allocate(buffer):
                    yield self.buffer(buffer)
                case Call():
                    yield self.call(statement)

    def buffer(self, buffer: Buffer) -> Any:
        about = buffer.shape, buffer.dtype.name, buffer.space.name, buffer.address, buffer.content
        return self.new(buffer.name), *about

    def call(self, call: Call) -> Any:
        operands = [
            self.access(value) if isinstance(value, Access) else value
            for value in call.operands.values()
        ]
        return call.instruction, operands, [str(value) for value in call.attrs.values()]

    def access(self, access: Access) -> Any:
        seen_as = access.dtype.name if access.dtype else ""
        moved = access.indirect
        indirect = (moved.kind, moved.dim, self.access(moved.index)) if moved else ()
        place = self.affine(access.offset), access.shape, access.strides
        return self.number(access.buffer), *place, seen_as, indirect

    def affine(self, offset: Affine) -> Any:
        terms = sorted((self.number(name), factor) for name, factor in offset.terms)
        return offset.constant, terms
