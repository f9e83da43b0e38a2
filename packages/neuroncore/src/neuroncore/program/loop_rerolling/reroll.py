"""Finds the loops of a program that has been unrolled.

    dma_copy(dst=t[:, 0:64], src=x[0:128, :])          for i in range(3):
    dma_copy(dst=t[:, 64:128], src=x[128:256, :])  →       dma_copy(dst=t[:, 64*i : 64*i + 64],
    dma_copy(dst=t[:, 128:192], src=x[256:384, :])                  src=x[128*i : 128*i + 128, :])

Statements repeat with a period when they differ in offsets only, each by a constant step. Buffers
allocated in an iteration belong to it; buffers that outlive it become one buffer
(buffer_stacking.py). The shortest period is rolled first, so that inner loops are found before
outer ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from neuroncore.program.ir.naming import named_like_source
from neuroncore.program.ir.nodes import Allocate, Loop, Statement
from neuroncore.program.ir.program import Program
from neuroncore.program.ir.traversal import accesses, walk
from neuroncore.program.loop_rerolling.buffer_stacking import Fold, can_join, can_move
from neuroncore.program.loop_rerolling.repeats import Users, starts
from neuroncore.program.loop_rerolling.statement_kinds import StatementKinds, own_buffers
from neuroncore.program.loop_rerolling.statement_table import NONE, Forms, RowColumns, Rows
from neuroncore.program.loop_rerolling.table_rewrites import Kinds, joined_rows, rolled_rows

LONGEST_PERIOD = 1024  # statements at one level; longer bodies stay unrolled
SIGHTS = 3  # how many next occurrences of a statement suggest a period


def reroll(
    program: Program, same_line: bool = False, names: Mapping[str, str] | None = None
) -> Program:
    """The same program with periodic statements as loops; executing it gives identical bytes.

    `same_line`: only statements from the same source line are iterations of one loop, as it is
    when a kernel has run. `names` are what buffers are to be called; loops are called as in the
    source lines that their statements come from.
    """
    rows, forms, pinned = _rows_of(program, same_line)
    rolled = replace(program, body=loops_in(rows, forms, pinned))
    return named_like_source(rolled, names or {})


def loops_in(rows: Rows, forms: Forms, pinned: frozenset[int]) -> tuple[Statement, ...]:
    """The rows as statements, periodic ones as loops. `pinned`: buffers that are like no other."""
    kinds = Kinds(int(rows.kinds.max(initial=0)) + 1)
    roller = _Roller(rows, forms, pinned, kinds)
    while roller.pass_over():
        pass
    return forms.nodes(roller.rows)


def _rows_of(program: Program, same_line: bool) -> tuple[Rows, Forms, frozenset[int]]:
    """The body of a program as rows, each with a form of its own."""
    allocates = [s for s in walk(program.body) if isinstance(s, Allocate)]
    buffers = {b.name: b for b in program.parameters}
    buffers |= {s.buffer.name: s.buffer for s in allocates}
    numbers = {name: number for number, name in enumerate(buffers)}
    constants = {b.name for b in buffers.values() if b.content is not None}
    pinned = {b.name for b in program.parameters} | constants | set(program.results)
    statement_kinds = StatementKinds(buffers, pinned, same_line)
    origins = {numbers[s.buffer.name]: s.origin for s in allocates}
    forms = Forms(dict(enumerate(buffers.values())), origins.__getitem__)
    rows = list[RowColumns]()
    for node in program.body:
        if isinstance(node, Allocate):
            rows.append((statement_kinds.kind(node), NONE, numbers[node.buffer.name], 0, (), ()))
            continue
        own = set(own_buffers(node)) if isinstance(node, Loop) else ()
        named = [*accesses(node)]
        which = [NONE if a.buffer in own else numbers[a.buffer] for a in named]
        offsets = tuple([access.offset.constant for access in named])
        rows.append(
            (statement_kinds.kind(node), forms.add(node), NONE, _depth(node), tuple(which), offsets)
        )
    return Rows.of(rows), forms, frozenset(numbers[name] for name in pinned)


def _depth(node: Statement) -> int:
    return 1 + max(map(_depth, node.body), default=0) if isinstance(node, Loop) else 0


class _Roller:
    def __init__(self, rows: Rows, forms: Forms, pinned: frozenset[int], kinds: Kinds) -> None:
        self.rows = rows
        self.forms = forms
        self.pinned = np.array(sorted(pinned), np.int64)
        self.kinds = kinds

    def periods(self) -> list[int]:
        """Distances at which statements recur, shortest first."""
        order = self.rows.kinds.argsort(kind="stable")
        kinds = self.rows.kinds[order]
        found: set[int] = set()
        for sight in range(1, SIGHTS + 1):
            distance = (order[sight:] - order[:-sight])[kinds[sight:] == kinds[:-sight]]
            found.update(np.unique(distance).tolist())
        return sorted(p for p in found if p <= LONGEST_PERIOD)

    def pass_over(self) -> bool:
        """Roll or fold everything that repeats with the shortest period; whether anything did."""
        periods = self.periods()
        users = Users(self.rows, self.pinned) if periods else None
        return users is not None and any(self.sweep(users, period) for period in periods)

    def sweep(self, users: Users, period: int) -> bool:
        """Roll or fold everything that repeats with this period; whether anything did."""
        rolls: list[tuple[int, int]] = []
        folds: list[Fold] = []
        done = 0
        for at, trips, kept in starts(self.rows, users, period):
            if at < done:
                continue
            if kept < trips:
                escaping = self.escaping(users, at, period, trips)
                if escaping is None:
                    continue
                folds += escaping
            rolls.append((at, trips))
            done = at + period * trips
        if folds:  # they change what the rolls were found on: those are found again
            self.rows = joined_rows(self.rows, self.forms, self.kinds, folds)
        elif rolls:
            found = np.array(rolls)
            self.rows = rolled_rows(self.rows, users, self.forms, self.kinds, period, found)
        return bool(rolls)

    def escaping(self, users: Users, start: int, period: int, trips: int) -> list[Fold] | None:
        """Folds that a roll needs for buffers that outlive their iteration; None: impossible."""
        rows = slice(start, start + period * trips)
        made = self.rows.made[rows].reshape(trips, period)
        until = users.until[rows].reshape(trips, period)
        ends = np.arange(start, start + period * trips, period)[:, None] + period
        folds = []
        for column in np.flatnonzero((until >= ends).any(axis=0)).tolist():
            members = made[:, column]
            if (until[:, column] == NONE).any() or (until[:, column] >= len(self.rows)).any():
                return None
            if users.first[members].max() >= users.last[members].min():
                return None
            if not self.can_fold(users, members):
                return None
            folds.append(Fold(tuple(members.tolist())))
        return folds

    def can_fold(self, users: Users, members: np.ndarray) -> bool:
        """Whether the members fit one buffer and every access to them can be rewritten."""
        buffer = self.forms.buffers[int(members[0])]
        if not can_join(buffer, len(members)):
            return False
        rows = self.rows
        uses = users.uses(members)
        row = users.row_of_use[uses]
        forms, which = rows.forms[row], uses - rows.first[row]
        seen = which.max() + 1
        keys = forms * seen + which
        for key in np.unique(keys).tolist():
            form, use = divmod(key, seen)
            constants = rows.offsets[uses[keys == key]]
            if not can_move(self.forms.uses_of(form)[use], buffer, constants):
                return False
        return True
