"""Components of a program that a transform step can change independently.

Loads of the same rows of a parameter, calls that could become one, stores of one result: a step
changes one part, and the variables that it moves are renamed in the parts that read them. A part
is one object, the same where it is identical, and remembers what its steps lead to: tens of
thousands of programs are made of a few hundred parts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, Self

from nkigym.tile_rewrites.interning import InternTable
from nkigym.tile_rewrites.nodes import Renaming


class TileRewrite(NamedTuple):
    """One opportunity: what is done, to which two statements.

    Loads and calls are named by the number of their variable, stores by their place among the
    root's stores.
    """

    kind: str
    first: int
    second: int


Rank = tuple[int, ...]
"""A step's place in the list of a program's opportunities."""


class Component(ABC):
    """Steps, what they lead to, and renaming, each worked out once."""

    def __init__(self, reads: frozenset[int]) -> None:
        self.reads = reads
        """The variables whose moving matters to it."""
        self._renamed: dict[Renaming, Self] = {}
        self._after: dict[TileRewrite, tuple[Self, Renaming | None]] = {}

    @cached_property
    @abstractmethod
    def steps(self) -> Mapping[TileRewrite, Rank]:
        """Every opportunity and its place in the list."""

    @property
    def count(self) -> int:
        """How many opportunities there are."""
        return len(self.steps)

    def step_at(self, index: int) -> TileRewrite:
        """One of them; each has its index."""
        return tuple(self.steps)[index]

    @classmethod
    def of(cls, table: InternTable, members: Mapping[int, Any]) -> Self:
        """The part that contains these, by the numbers of their statements."""
        return table.part(cls, members)

    def after(self, step: TileRewrite) -> tuple[Self, Renaming | None]:
        """The part after a step, and where its variables are now; None without readers.

        Raises CertificateError where a value would change.
        """
        done = self._after.get(step)
        if done is None:
            done = self._after[step] = self._apply(step)
        return done

    @cached_property
    def outcomes(self) -> tuple[tuple[Self, Renaming | None], ...]:
        """The result of each opportunity."""
        return tuple(self.after(step) for step in self.steps)

    def renamed(self, renaming: Renaming) -> Self:
        """The part after variables that it reads have moved."""
        done = self._renamed.get(renaming)
        if done is None:
            done = self._renamed[renaming] = self._move(renaming)
        return done

    @abstractmethod
    def _apply(self, step: TileRewrite) -> tuple[Self, Renaming | None]: ...

    @abstractmethod
    def _move(self, renaming: Renaming) -> Self: ...
