"""Rows with loops for what repeats in them, or with one buffer for several."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from neuroncore.program.ir.nodes import Access, Allocate, Buffer
from neuroncore.program.ir.traversal import map_accesses
from neuroncore.program.loop_rerolling.buffer_stacking import (
    Fold,
    in_joined,
    joined,
    offsets_in_joined,
)
from neuroncore.program.loop_rerolling.repeats import Users
from neuroncore.program.loop_rerolling.statement_table import NONE, Forms, Rolled, Rows, Use


@dataclass(slots=True)
class Kinds:
    """Numbers for rows that are made; those below `new` are of the rows there were."""

    new: int
    known: dict[Hashable, int] = field(default_factory=dict)

    def number(self, key: Hashable) -> int:
        """One number for equal keys."""
        return self.known.setdefault(key, self.new + len(self.known))


def rolled_rows(
    rows: Rows, users: Users, forms: Forms, kinds: Kinds, period: int, found: np.ndarray
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


def joined_rows(rows: Rows, forms: Forms, kinds: Kinds, folds: Sequence[Fold]) -> Rows:
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
