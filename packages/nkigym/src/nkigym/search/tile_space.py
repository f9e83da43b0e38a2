"""Tile programs as a space to search: priced as kernels, lowered and rolled into loops."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from neuroncore.program import Program, reroll
from nkigym.lower import lower
from nkigym.lower.lowering import LoweringError
from nkigym.search.pricing import Machine, digest
from nkigym.search.space import Applied, Kinds, RefusedStepError
from nkigym.space import Node, Space, Step
from nkigym.space.values import CertificateError
from nkigym.tiles import TileProgram

KINDS = Kinds(
    first=(
        "reuse", "merge loads", "reuse calls", "widen calls", "merge calls", "merge stores",
        "load twice",
    )
)  # fmt: skip
"""Every step leaves a program one statement shorter."""


class TileSpace:
    """A space of tile programs; every step is certified by value numbers.

    What its calls need grows with the statements of the program, so it is for small ones.
    """

    def __init__(self, space: Space, target: str = "trn2") -> None:
        self._space, self._target = space, target
        self._kernel: tuple[Node, Program | LoweringError] | None = None
        self._machine = Machine(target, self.kernel(space.root).nki)

    @property
    def name(self) -> str:
        return f"tile programs of {self._space.program.name}"

    @property
    def root(self) -> Node:
        return self._space.root

    @property
    def kinds(self) -> Kinds:
        return KINDS

    def statements(self, state: Node) -> int:
        return len(self._space.tile_program(state).statements)

    def steps(self, state: Node) -> Sequence[Step]:
        return self._space.steps(state)

    def apply(self, state: Node, step: Step) -> Applied[Node]:
        try:
            return Applied(self._space.after(state, step), (step,))
        except KeyError:
            raise RefusedStepError(f"{step.kind}: not offered here") from None
        except CertificateError as wrong:
            raise RefusedStepError(f"{step.kind}: {wrong}") from None

    def kind(self, step: Step) -> str:
        return step.kind

    def family(self, step: Step) -> Hashable:
        return step.kind

    def key(self, state: Node) -> Hashable:
        return state

    def illegal(self, state: Node) -> str | None:
        try:
            return self._machine.illegal(self.kernel(state))
        except LoweringError:
            return "a sum is read after something has been added to it"

    def over_capacity(self, state: Node) -> str | None:
        return self._machine.over_capacity(self.kernel(state))

    def bound_ns(self, state: Node) -> float:
        return self._machine.bound_ns(self.kernel(state))

    def price_ns(self, state: Node) -> float:
        return self._machine.price_ns(self.kernel(state))

    def digest(self, state: Node) -> str:
        return digest(self.kernel(state))

    def tile_program(self, state: Node) -> TileProgram:
        """A state as statements."""
        return self._space.tile_program(state)

    def kernel(self, state: Node) -> Program:
        """The kernel program of a state. Raises LoweringError where there is none."""
        if self._kernel is None or self._kernel[0] is not state:
            self._kernel = state, self._lowered(state)
        made = self._kernel[1]
        if isinstance(made, LoweringError):
            raise made
        return made

    def _lowered(self, state: Node) -> Program | LoweringError:
        try:
            return reroll(lower(self._space.tile_program(state), self._target))
        except LoweringError as wrong:
            return wrong

    def write_step(self, single: Step) -> Any:
        return list(single)

    def read_step(self, given: Any) -> Step:
        match given:
            case [str(kind), int(first), int(second)]:
                return Step(kind, first, second)
        raise ValueError(f"{given!r} is no step of a tile program")
