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

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from neuroncore.program.ir.naming import named_like_source
from neuroncore.program.ir.nodes import Access, Allocate, Buffer, Loop, Statement
from neuroncore.program.ir.program import Program
from neuroncore.program.ir.traversal import accesses, map_accesses, walk
from neuroncore.program.loop_rerolling.buffer_stacking import (
    Fold,
    can_join,
    can_move,
    in_joined,
    joined,
    offsets_in_joined,
)
from neuroncore.program.loop_rerolling.repeats import Users, starts
from neuroncore.program.loop_rerolling.statement_kinds import StatementKinds, own_buffers
from neuroncore.program.loop_rerolling.statement_table import (
    NONE,
    Forms,
    Rolled,
    RowColumns,
    Rows,
    Use,
)

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
    kinds = _RowKinds(int(rows.kinds.max(initial=0)) + 1)
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
    def __init__(self, rows: Rows, forms: Forms, pinned: frozenset[int], kinds: _RowKinds) -> None:
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
            self.rows = _joined_rows(self.rows, self.forms, self.kinds, folds)
        elif rolls:
            found = np.array(rolls)
            self.rows = _rolled_rows(self.rows, users, self.forms, self.kinds, period, found)
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


# -- rows with loops, or with one buffer for several -----------------------------------------------


@dataclass(slots=True)
class _RowKinds:
    """Numbers for rows that are made; those below `new` are of the rows there were."""

    new: int
    known: dict[Hashable, int] = field(default_factory=dict)

    def number(self, key: Hashable) -> int:
        """One number for equal keys."""
        return self.known.setdefault(key, self.new + len(self.known))


def _rolled_rows(
    rows: Rows, users: Users, forms: Forms, kinds: _RowKinds, period: int, found: np.ndarray
) -> Rows:
    """The rows with a loop for each of `found` (L, 2): where it starts, how many trips of `period`
    rows it has. They do not overlap; all that their iterations make is used in them alone.
    """
    start, trips = found.T
    end = start + period * trips
    low, behind = rows.first[start], rows.first[start + period]
    counts = rows.counts()
    counts[start] = behind - low
    new = Rows(
        rows.kinds.copy(), rows.forms.copy(), rows.made.copy(), rows.inside.copy(),
        rows.first, rows.buffers.copy(), rows.offsets,
    )  # fmt: skip
    new.made[start] = NONE
    body = start[:, None] + np.arange(period)
    new.inside[start] = rows.inside[body].max(axis=1) + 1
    widths = behind - low
    for width in sorted({*widths.tolist()}):
        loops = (widths == width).nonzero()[0]
        first = start[loops]
        uses = low[loops, None] + np.arange(width)
        steps = rows.offsets[uses + width] - rows.offsets[uses]
        own = users.places(rows.buffers[uses], first[:, None], period)
        looks = np.concatenate([trips[loops, None], rows.kinds[body[loops]], steps, own], axis=1)
        new.kinds[first] = [kinds.number((period, look)) for look in _bytes_of_rows(looks)]
        new.forms[first] = [
            forms.add(Rolled(rows, at, period, count, moves))
            for at, count, moves in zip(
                first.tolist(), trips[loops].tolist(), steps.tolist(), strict=True
            )
        ]
        new.buffers[uses[own != NONE]] = NONE
    keep = _but(start + 1, end, len(rows))
    keep_uses = _but(behind, rows.first[end], len(rows.buffers))
    return new.kept(keep, keep_uses, counts)


def _bytes_of_rows(table: np.ndarray) -> Iterator[bytes]:
    size, held = table.shape[1] * table.itemsize, table.tobytes()
    return (held[at : at + size] for at in range(0, len(held), size))


def _but(low: np.ndarray, high: np.ndarray, length: int) -> np.ndarray:
    """(length,) whether a place is in none of the ranges."""
    outside = np.ones(length, np.bool_)
    for begin, end in zip(low.tolist(), high.tolist(), strict=True):
        outside[begin:end] = False
    return outside


def _joined_rows(rows: Rows, forms: Forms, kinds: _RowKinds, folds: Sequence[Fold]) -> Rows:
    """The rows with one buffer for the members of each fold."""
    buffers = forms.buffers
    counts = np.array([len(f.members) for f in folds])
    heads = np.array([f.members[0] for f in folds])
    old = [buffers[head] for head in heads.tolist()]
    for head, buffer, count in zip(heads.tolist(), old, counts.tolist(), strict=True):
        buffers[head] = joined(buffer, count)
    members = np.concatenate([f.members for f in folds])
    size = max(rows.buffers.max(initial=0), members.max()) + 2
    fold_of, number_of = np.full(size, NONE), np.zeros(size, np.int64)
    fold_of[members] = np.repeat(np.arange(len(folds)), counts)
    number_of[members] = np.concatenate([np.arange(count) for count in counts])

    new_kinds, new_forms = rows.kinds.copy(), rows.forms.copy()
    numbers, offsets = rows.buffers.copy(), rows.offsets.copy()
    folded = fold_of[rows.buffers]
    touched = np.unique(rows.row_of_use()[folded != NONE])
    for alike in _groups(rows.forms[touched]):
        at = touched[alike]
        form = int(rows.forms[at[0]])
        uses = rows.first[at][:, None] + np.arange(rows.first[at[0] + 1] - rows.first[at[0]])
        many = np.where(folded[uses] == NONE, 0, counts[folded[uses]])
        for same in _groups_of_rows(many):
            first, looks = folded[uses[same[0]]].tolist(), tuple(many[same[0]].tolist())
            into = [None if f == NONE else (old[f], len(folds[f].members)) for f in first]
            new_kinds[at[same]] = kinds.number((int(rows.kinds[at[0]]), looks))
            new_forms[at[same]] = _moved(forms, form, into)
            for use, to, which in zip(forms.uses_of(form), into, uses[same].T, strict=True):
                if to:
                    number = number_of[rows.buffers[which]]
                    offsets[which] = offsets_in_joined(use, *to, number, offsets[which])
    numbers[folded != NONE] = heads[folded[folded != NONE]]
    makes = (rows.made != NONE) & (fold_of[rows.made] != NONE)
    keep = ~makes | (number_of[rows.made] == 0)
    for row in np.flatnonzero(makes & keep).tolist():
        count = int(counts[fold_of[rows.made[row]]])
        new_kinds[row] = kinds.number((int(rows.kinds[row]), (count,)))
    new = replace(rows, kinds=new_kinds, forms=new_forms, buffers=numbers, offsets=offsets)
    return new.kept(keep)


def _groups(values: np.ndarray) -> list[np.ndarray]:
    """Where equal values stand, value by value."""
    order = np.argsort(values, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(values[order])) + 1) if len(order) else []


def _groups_of_rows(table: np.ndarray) -> list[np.ndarray]:
    """Where equal rows of the table stand."""
    if (table == table[0]).all():
        return [np.arange(len(table))]
    return _groups(np.unique(table, axis=0, return_inverse=True)[1].ravel())


def _moved(forms: Forms, form: int, into: list[tuple[Buffer, int] | None]) -> int:
    """A form like this, with accesses to members of folds as accesses to what was made of them."""
    fold_of, ranges = iter(into), iter(forms.uses_of(form))

    def move(access: Access) -> Access:
        found, use = next(fold_of), next(ranges)
        return in_joined(Use(access, use.ranges), *found) if found else access

    moved = map_accesses(forms.form(form), move)
    assert not isinstance(moved, Allocate)
    return forms.add(moved)
