"""Statements as rows of integers, among which loops are found; the remaining rows become nodes.

A row is a form (a call or loop of which many rows may be made), the buffer and the constant offset
of each access, and the buffer that it allocates, if it is an Allocate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

import numpy as np

from neuroncore.integers.affine import Affine
from neuroncore.program.ir.nodes import Access, Allocate, Buffer, Call, Loop, Statement
from neuroncore.program.ir.traversal import Ranges, accesses, map_accesses, visit
from neuroncore.source_location import Place

NONE = -1
"""No buffer: of a row that allocates nothing, of an access to what its own loop allocates."""

Terms = tuple[tuple[str, int], ...]
"""Loop variables and their factors."""

Row = tuple[int, int, Sequence[int], Sequence[int]]
"""The form, the buffer that it makes, buffers and offsets of its accesses."""

RowColumns = tuple[int, int, int, int, Sequence[int], Sequence[int]]
"""Kind, form, made and inside of a row; buffers and offsets of its accesses."""


@dataclass(slots=True, eq=False)
class Rows:
    """The statements of one level (R), and their accesses (U) in the order of `accesses`."""

    kinds: np.ndarray
    """(R,) equal for statements that may be iterations of each other."""
    forms: np.ndarray
    """(R,) numbers of Forms; nothing for an Allocate."""
    made: np.ndarray
    """(R,) the buffer that an Allocate makes, NONE."""
    inside: np.ndarray
    """(R,) how deep loops are nested in the statement."""
    first: np.ndarray
    """(R + 1,) where the accesses of a row begin."""
    buffers: np.ndarray
    """(U,) whose elements, by number."""
    offsets: np.ndarray
    """(U,) the constants of their offsets."""

    @classmethod
    def of(cls, rows: Sequence[RowColumns]) -> Rows:
        """A table of these rows."""
        kinds, forms, made, inside, buffers, offsets = zip(*rows, strict=True) if rows else [()] * 6
        columns = (
            kinds, forms, made, inside, [0, *accumulate(map(len, buffers))],
            [*chain.from_iterable(buffers)], [*chain.from_iterable(offsets)],
        )  # fmt: skip
        return cls(*(np.array(column, np.int64) for column in columns))

    def __len__(self) -> int:
        return len(self.kinds)

    def uses(self, row: int) -> slice:
        """Where the accesses of the row stand."""
        return slice(int(self.first[row]), int(self.first[row + 1]))

    def counts(self) -> np.ndarray:
        """(R,) how many accesses each row has."""
        return self.first[1:] - self.first[:-1]  # np.diff takes ten times as long for few

    def row_of_use(self) -> np.ndarray:
        """(U,) the row that each access belongs to."""
        return np.arange(len(self)).repeat(self.counts())

    def depth(self) -> int:
        """How deep loops are nested in one of them."""
        return int(self.inside.max())

    def each(self) -> Iterator[Row]:
        """Row by row."""
        first, buffers, offsets = self.first.tolist(), self.buffers.tolist(), self.offsets.tolist()
        parts = [slice(*ends) for ends in pairwise(first)]
        return zip(
            self.forms.tolist(), self.made.tolist(),
            [buffers[part] for part in parts], [offsets[part] for part in parts], strict=True,
        )  # fmt: skip

    def part(self, start: int, stop: int) -> Rows:
        """The rows from `start` to before `stop`."""
        first = self.first[start : stop + 1]
        uses = slice(int(first[0]), int(first[-1]))
        rows = slice(start, stop)
        return Rows(
            self.kinds[rows], self.forms[rows], self.made[rows], self.inside[rows],
            first - uses.start, self.buffers[uses], self.offsets[uses],
        )  # fmt: skip

    def kept(
        self,
        keep: np.ndarray,
        keep_uses: np.ndarray | None = None,
        counts: np.ndarray | None = None,
    ) -> Rows:
        """The rows where `keep` (R, bool) is set, with their accesses: `counts` (R) of them each,
        together those where `keep_uses` (U, bool) is set.
        """
        counts = self.counts() if counts is None else counts
        if keep_uses is None:
            keep_uses = keep.repeat(counts)
        rows, uses = keep.nonzero()[0], keep_uses.nonzero()[0]
        first = np.zeros(len(rows) + 1, np.int64)
        counts[rows].cumsum(out=first[1:])
        return Rows(
            self.kinds[rows], self.forms[rows], self.made[rows], self.inside[rows],
            first, self.buffers[uses], self.offsets[uses],
        )  # fmt: skip


class Use(NamedTuple):
    """An access of a form, and the values of the loops around it in that form."""

    access: Access
    ranges: Ranges


@dataclass(slots=True, eq=False)
class Rolled:
    """A loop that was found among `level`: its first iteration is `period` rows from `start`;
    `steps` says how far each access moves per trip.

    Its node is made when it is asked for, which is seldom: most become part of an outer loop, of
    which one iteration is kept.
    """

    level: Rows
    start: int
    period: int
    trips: int
    steps: Sequence[int]

    @property
    def rows(self) -> Rows:
        """Its first iteration."""
        return self.level.part(self.start, self.start + self.period)


@dataclass(slots=True)
class Forms:
    """The parts of rows: calls and loops by number, buffers by number, their allocations."""

    buffers: MutableMapping[int, Buffer]
    origin: Callable[[int], Place | None]
    """Of the Allocate of a buffer."""
    forms: list[Call | Loop | Rolled] = field(default_factory=list)
    seen: dict[int, list[Use]] = field(default_factory=dict)
    """The uses of forms that were looked at."""

    def add(self, form: Call | Loop | Rolled) -> int:
        """The number of a new form."""
        self.forms.append(form)
        return len(self.forms) - 1

    def nodes(self, rows: Rows, terms: Sequence[Terms] | None = None) -> tuple[Statement, ...]:
        """All rows as statements, with `terms` (U) of loops around them added to their offsets."""
        found, at = list[Statement](), 0
        for form, made, buffers, offsets in rows.each():
            if made != NONE:
                found.append(Allocate(self.buffers[made], self.origin(made)))
                continue
            end = at + len(buffers)
            around = terms[at:end] if terms else ((),) * len(buffers)
            found.append(self._filled(form, buffers, offsets, around))
            at = end
        return tuple(found)

    def form(self, number: int) -> Call | Loop:
        """A call or loop as the rows of this form represent."""
        form = self.forms[number]
        return self._loop(form, ((),) * len(form.steps)) if isinstance(form, Rolled) else form

    def uses_of(self, number: int) -> list[Use]:
        """The accesses of a form, of which strides, shapes and steps hold for its rows."""
        known = self.seen.get(number)
        if known is None:
            known = self.seen[number] = [
                Use(access, ranges)
                for statement, ranges in visit((self.form(number),))
                if isinstance(statement, Call)
                for access in accesses(statement)
            ]
        return known

    def _filled(
        self, number: int, buffers: Sequence[int], offsets: Sequence[int], terms: Sequence[Terms]
    ) -> Statement:
        form = self.forms[number]
        if isinstance(form, Rolled):
            return self._loop(form, terms)
        uses = zip(buffers, offsets, terms, strict=True)

        def fill(access: Access) -> Access:
            buffer, constant, more = next(uses)
            if buffer == NONE:
                return access if not more else _moved(access, access.buffer, access.offset, more)
            offset = Affine(constant, access.offset.terms)
            return _moved(access, self.buffers[buffer].name, offset, more)

        return map_accesses(form, fill)

    def _loop(self, rolled: Rolled, terms: Sequence[Terms]) -> Loop:
        rows = rolled.rows
        variable = f".{rows.depth()}"  # by depth, until all are named like the source
        moves = [
            (*more, (variable, step)) if step else more
            for more, step in zip(terms, rolled.steps, strict=True)
        ]
        body = self.nodes(rows, moves)
        return Loop(variable, 0, rolled.trips, body, origin=body[0].origin)


def _moved(access: Access, buffer: str, offset: Affine, more: Terms) -> Access:
    """The access to another buffer, at an offset to which terms are added."""
    if more:
        offset += Affine(0, tuple(sorted(more)))
    return Access(buffer, offset, access.shape, access.strides, access.dtype, access.indirect)
