"""Claims of disjointness, each proved when it is made: what a transform step rests on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from neuroncore.program import Loop, Program, Statement
from nkigym.analysis.accesses import CallAccess, Range, Reader, range_of
from nkigym.analysis.disjointness import Disjoint, Shared, conflicts, is_disjoint
from nkigym.kernels.step import Path, TransformError
from nkigym.kernels.tree import buffers_of, loops_around


@dataclass(frozen=True, slots=True)
class StepResult:
    """A program after a step, and the claims that it rests on."""

    program: Program
    claims: tuple[Disjoint, ...] = ()


@dataclass(slots=True)
class Claims:
    """Claims about the accesses of a program, each proved by intervals when it is made."""

    program: Program
    at: Path
    made: list[Disjoint] = field(default_factory=list)
    reader: Reader = field(init=False)
    loops: tuple[Loop, ...] = field(init=False)
    around: list[Range] = field(init=False)

    def __post_init__(self) -> None:
        program = self.program
        self.reader = Reader(buffers_of(program), program.target, program.nki)
        self.loops = loops_around(program, self.at)
        self.around = [range_of(loop) for loop in self.loops]

    def accesses(self, body: Sequence[Statement], private: Iterable[str] = ()) -> list[CallAccess]:
        """The accesses of the statements, without buffers that are private to an iteration."""
        mine = set(private)
        return [t for t in self.reader.block(tuple(body)) if t.buffer not in mine]

    def require_disjoint(
        self, first: Iterable[CallAccess], second: Iterable[CallAccess],
        related: Sequence[tuple[Loop, str]], why: str,
    ) -> None:  # fmt: skip
        """Claim that all conflicting pairs are disjoint while iterations are `related`, and equal
        further out.

        Raises TransformError with `why` and the pair where intervals do not show it.
        """
        shared = tuple(
            [Shared(r, "=") for r in self.around]
            + [Shared(range_of(loop), relation) for loop, relation in related]
        )
        for a, b in conflicts(first, second):
            if a.covers and b.covers and self._is_begun_by_all(a.buffer):
                continue
            buffer = self.reader.buffers.get(a.buffer)
            if buffer is None:
                raise TransformError(f"{why}: both use {a.buffer}")
            claim = Disjoint(a, b, shared, buffer)
            if not is_disjoint(claim):
                raise TransformError(
                    f"{why}: {_KIND[a.kind]} and {_KIND[b.kind]} of {a.buffer} may overlap"
                )
            self.made.append(claim)

    def _is_begun_by_all(self, register: str) -> bool:
        """Whether every call of the program resets the accumulator."""
        call_accesses = self.reader.block(self.program.body)
        return all(t.covers for t in call_accesses if t.buffer == register)

    def result(self, program: Program) -> StepResult:
        """`program`, resting on the claims made so far."""
        return StepResult(program, tuple(self.made))


_KIND = {"R": "a read", "W": "a write", "A": "a sum"}
