"""A kernel program in the making: buffers with names of their own, loops, calls in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from neuroncore.engines import Space
from neuroncore.errors import Place
from neuroncore.program import Affine, Allocate, Buffer, Loop, Program, Statement, make_call
from neuroncore.program.naming import RESERVED
from nki_dtypes import DType


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a program was written."""

    buffers: dict[str, Buffer]
    blocks: tuple[tuple[Statement, ...], ...]
    taken: frozenset[str]


class Writer:
    """Statements are added to the innermost open loop."""

    def __init__(
        self, name: str, target: str, nki: str, times: dict[str, float] | None = None
    ) -> None:
        self.name, self.target, self.nki = name, target, nki
        self.times: dict[str, float] = {} if times is None else times
        """Predicted microseconds by the text of a program: what was tried once is known."""
        self.parameters: list[Buffer] = []
        self.buffers: dict[str, Buffer] = {}
        self._blocks: list[list[Statement]] = [[]]
        self._taken: set[str] = set(RESERVED) | {name}

    def parameter(self, name: str, shape: tuple[int, ...], dtype: DType) -> Buffer:
        """An array that the kernel is given."""
        made = Buffer(self._new(name), shape, dtype, Space.hbm)
        self.parameters.append(made)
        self.buffers[made.name] = made
        return made

    def allocate(
        self, name: str, shape: tuple[int, ...], dtype: DType, space: Space,
        origin: Place | None = None,
    ) -> Buffer:  # fmt: skip
        """A new buffer, alive from here to the end of the open loop."""
        made = Buffer(self._new(name), shape, dtype, space)
        self.buffers[made.name] = made
        self._blocks[-1].append(Allocate(made, origin))
        return made

    def call(self, instruction: str, origin: Place | None = None, **fields: Any) -> None:
        """One instruction."""
        self._blocks[-1].append(make_call(instruction, None, origin, **fields))

    @contextmanager
    def loop(self, name: str, trips: int) -> Iterator[Affine]:
        """The loop variable as an expression; no loop where there is one iteration."""
        if trips == 1:
            yield Affine()
            return
        variable = self._new(name)
        self._blocks.append([])
        yield Affine.variable(variable)
        body = tuple(self._blocks.pop())
        self._taken.discard(variable)
        self._blocks[-1].append(Loop(variable, 0, trips, body))

    def mark(self) -> Mark:
        """Where the program is now; `go_back` makes it so again."""
        blocks = tuple(map(tuple, self._blocks))
        return Mark(dict(self.buffers), blocks, frozenset(self._taken))

    def since(self, mark: Mark) -> tuple[Statement, ...]:
        """What was added to the block that was open then, and is open now."""
        return tuple(self._blocks[-1][len(mark.blocks[-1]) :])

    def go_back(self, mark: Mark) -> None:
        self.buffers, self._taken = dict(mark.buffers), set(mark.taken)
        self._blocks = [list(block) for block in mark.blocks]

    def finish(self, results: tuple[str, ...]) -> Program:
        """The program that returns these buffers."""
        (body,) = self._blocks
        return Program(
            self.name, tuple(self.parameters), tuple(body), results, self.target, self.nki
        )

    def _new(self, wanted: str) -> str:
        return new_name(wanted, self._taken.__contains__, self._taken.add)


def new_name(wanted: str, taken: Callable[[str], bool], take: Callable[[str], None]) -> str:
    """`wanted`, with a number behind it where it is taken."""
    name, number = wanted, 1
    while taken(name):
        number += 1
        name = f"{wanted}_{number}"
    take(name)
    return name
