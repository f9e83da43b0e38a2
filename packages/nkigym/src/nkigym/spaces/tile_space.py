"""Tile programs as a search space; latencies are estimated for the lowered kernels, rolled into
loops."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from hashlib import sha256
from typing import Any

from neuroncore.program import Program, print_program, reroll
from nkigym.search.protocol import Applied, RejectedStepError, StepKinds
from nkigym.spaces.cost_model import KernelCosts
from nkigym.tile_rewrites import Node, RewriteGraph, TileRewrite
from nkigym.tile_rewrites.value_numbering import CertificateError
from nkigym.tiles import TileProgram
from nkigym.tiles.lowering import LoweringError, lower

KINDS = StepKinds(
    first=(
        "reuse", "merge loads", "reuse calls", "widen calls", "merge calls", "merge stores",
        "load twice",
    )
)  # fmt: skip
"""Every step leaves a program one statement shorter."""


class TileSpace(KernelCosts[Node]):
    """A space of tile programs; every step is certified by value numbers.

    What its calls need grows with the statements of the program, so it is for small ones.
    """

    def __init__(self, space: RewriteGraph, target: str = "trn2") -> None:
        self._space, self._target = space, target
        self._kernel: tuple[Node, Program | LoweringError] | None = None
        super().__init__(target, self.kernel(space.root).nki)

    @property
    def name(self) -> str:
        return f"tile programs of {self._space.program.name}"

    @property
    def root(self) -> Node:
        return self._space.root

    @property
    def kinds(self) -> StepKinds:
        return KINDS

    def statements(self, state: Node) -> int:
        return len(self._space.tile_program(state).statements)

    def steps(self, state: Node) -> Sequence[TileRewrite]:
        return self._space.steps(state)

    def apply(self, state: Node, step: TileRewrite) -> Applied[Node]:
        try:
            return Applied(self._space.after(state, step), (step,))
        except KeyError:
            raise RejectedStepError(f"{step.kind}: not offered here") from None
        except CertificateError as wrong:
            raise RejectedStepError(f"{step.kind}: {wrong}") from None

    def kind(self, step: TileRewrite) -> str:
        return step.kind

    def family(self, step: TileRewrite) -> Hashable:
        return step.kind

    def key(self, state: Node) -> Hashable:
        return state

    def illegal(self, state: Node) -> str | None:
        try:
            return super().illegal(state)
        except LoweringError:
            return "a sum is read after something has been added to it"

    def digest(self, state: Node) -> str:
        """Of the text: equal for kernels that print alike, also from different sources."""
        return sha256(print_program(self.kernel(state)).encode()).hexdigest()

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

    def write_step(self, single: TileRewrite) -> Any:
        return list(single)

    def read_step(self, given: Any) -> TileRewrite:
        match given:
            case [str(kind), int(first), int(second)]:
                return TileRewrite(kind, first, second)
        raise ValueError(f"{given!r} is not a rewrite of a tile program")
