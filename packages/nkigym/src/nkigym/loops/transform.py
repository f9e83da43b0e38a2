"""What a transform is: what it can be applied to, when it may be, what it makes, what it claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from neuroncore.program import Loop, Program, Statement
from nkigym.loops.apart import Apart, Shared, conflicts, is_apart
from nkigym.loops.step import Path, Refused, Step
from nkigym.loops.touches import Range, Reader, Touch, range_of
from nkigym.loops.tree import Visible, loops_around


@dataclass(frozen=True, slots=True)
class Taken:
    """A program after a step, and the claims that it rests on."""

    program: Program
    claims: tuple[Apart, ...] = ()


@dataclass(frozen=True, slots=True)
class Transform:
    """A kind of step.

    `options` lists the steps whose form fits a statement at a place, which is one of `on`; `take`
    applies one, or raises Refused with the reason.
    """

    name: str
    does: str
    options: Callable[[Program, Path, Any], Iterable[Step]]
    take: Callable[[Program, Step], Taken]
    on: tuple[type, ...] = (Loop,)


@dataclass(slots=True)
class Claims:
    """Claims about the touches of a program, each proved by intervals when it is made."""

    program: Program
    at: Path
    made: list[Apart] = field(default_factory=list)
    reader: Reader = field(init=False)
    loops: tuple[Loop, ...] = field(init=False)
    around: list[Range] = field(init=False)

    def __post_init__(self) -> None:
        program = self.program
        self.reader = Reader(Visible(program, self.at), program.target, program.nki)
        self.loops = loops_around(program, self.at)
        self.around = [range_of(loop) for loop in self.loops]

    def touches(self, body: Sequence[Statement], private: Iterable[str] = ()) -> list[Touch]:
        """What the statements touch, without buffers that each iteration has for itself."""
        mine = set(private)
        return [t for t in self.reader.block(tuple(body)) if t.buffer not in mine]

    def apart(
        self, first: Iterable[Touch], second: Iterable[Touch],
        related: Sequence[tuple[Loop, str]], why: str,
    ) -> None:  # fmt: skip
        """All conflicting pairs lie apart while iterations are `related`, and equal further out.

        Raises Refused with `why` and the pair where intervals do not show it.
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
                raise Refused(f"{why}: both use {a.buffer}")
            claim = Apart(a, b, shared, buffer)
            if not is_apart(claim):
                raise Refused(f"{why}: {_KIND[a.kind]} and {_KIND[b.kind]} of {a.buffer} may meet")
            self.made.append(claim)

    def _is_begun_by_all(self, register: str) -> bool:
        """Whether no call of the program goes on with what another left in an accumulator."""
        touches = self.reader.block(self.program.body)
        return all(t.covers for t in touches if t.buffer == register)

    def taken(self, program: Program) -> Taken:
        return Taken(program, tuple(self.made))


_KIND = {"R": "a read", "W": "a write", "A": "a sum"}
