"""Finds the loops of a program that has been unrolled.

    dma_copy(dst=t[:, 0:64], src=x[0:128, :])          for i in range(3):
    dma_copy(dst=t[:, 64:128], src=x[128:256, :])  →       dma_copy(dst=t[:, 64*i : 64*i + 64],
    dma_copy(dst=t[:, 128:192], src=x[256:384, :])                  src=x[128*i : 128*i + 128, :])

Statements repeat with a period when they differ in offsets only, each by a constant step. Buffers
allocated in an iteration belong to it; those that outlive it become one buffer (see fold.py). The
shortest period is rolled first, so that inner loops are found before outer ones.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from neuroncore.program.fold import (
    Fold,
    can_join,
    can_move,
    in_joined,
    joined,
    offset_in_joined,
)
from neuroncore.program.looks import Looks, own_buffers
from neuroncore.program.naming import named_like_source
from neuroncore.program.nodes import (
    Access,
    Allocate,
    Buffer,
    Loop,
    Program,
    Statement,
    accesses,
    map_accesses,
    walk,
)
from neuroncore.program.repeats import Repeats, Users
from neuroncore.program.rows import NONE, Forms, Rolled, Rows, Use

LONGEST_PERIOD = 1024  # statements at one level; longer bodies stay unrolled
_SIGHTS = 3  # how many next occurrences of a statement suggest a period
_FIRST_TRIPS = 16  # looked at before it is known that a loop is longer


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
    roller = _Roller(rows, forms, pinned)
    while any(roller.sweep(period) for period in roller.periods()):
        pass
    return forms.nodes(roller.rows)


def _rows_of(program: Program, same_line: bool) -> tuple[Rows, Forms, frozenset[int]]:
    """The body of a program as rows, each with a form of its own."""
    buffers = program.buffers()
    numbers = {name: number for number, name in enumerate(buffers)}
    constants = {b.name for b in buffers.values() if b.content is not None}
    pinned = {b.name for b in program.parameters} | constants | set(program.results)
    looks = Looks(buffers, pinned, same_line)
    origins = {
        numbers[s.buffer.name]: s.origin for s in walk(program.body) if isinstance(s, Allocate)
    }
    forms = Forms(dict(enumerate(buffers.values())), origins.__getitem__)
    first, which, offsets = [0], list[int](), list[int]()
    for node in program.body:
        own = set(own_buffers(node)) if isinstance(node, Loop) else ()
        for access in accesses(node):
            which.append(NONE if access.buffer in own else numbers[access.buffer])
            offsets.append(access.offset.constant)
        first.append(len(which))
    body = program.body
    columns = (
        [looks.kind(s) for s in body],
        [NONE if isinstance(s, Allocate) else forms.add(s) for s in body],
        [numbers[s.buffer.name] if isinstance(s, Allocate) else NONE for s in body],
        [_depth(s) for s in body],
        first, which, offsets,
    )  # fmt: skip
    rows = Rows(*(np.array(column, np.int64) for column in columns))
    return rows, forms, frozenset(numbers[name] for name in pinned)


def _depth(node: Statement) -> int:
    return 1 + max(map(_depth, node.body), default=0) if isinstance(node, Loop) else 0


@dataclass(slots=True)
class _Roll:
    """Iterations found at `start`: `trips` of `period` rows each; `steps` per access."""

    start: int
    period: int
    trips: int
    steps: np.ndarray

    @property
    def end(self) -> int:
        """The row behind it."""
        return self.start + self.period * self.trips


class _Roller:
    def __init__(self, rows: Rows, forms: Forms, pinned: frozenset[int]) -> None:
        self.rows = rows
        self.forms = forms
        self.pinned = pinned
        self.kinds: dict[Hashable, int] = {}
        self.new_kind = int(rows.kinds.max(initial=0)) + 1

    def kind(self, looks: Hashable) -> int:
        return self.kinds.setdefault(looks, self.new_kind + len(self.kinds))

    # -- finding iterations -----------------------------------------------------------------------

    def periods(self) -> list[int]:
        """Distances at which statements recur, shortest first."""
        order = np.argsort(self.rows.kinds, kind="stable")
        kinds = self.rows.kinds[order]
        found: set[int] = set()
        for sight in range(1, _SIGHTS + 1):
            again = np.flatnonzero(kinds[sight:] == kinds[:-sight])
            found.update(np.unique(order[again + sight] - order[again]).tolist())
        return sorted(p for p in found if p <= LONGEST_PERIOD)

    def sweep(self, period: int) -> bool:
        """Roll or fold everything that repeats with this period; whether anything did."""
        kinds = self.rows.kinds
        same = np.flatnonzero(kinds[period:] == kinds[:-period])
        runs = [(a, b) for a, b in _runs(same) if b + 1 - a >= period]
        if not runs:
            return False
        users = Users(self.rows)
        rolls: list[_Roll] = []
        folds: list[Fold] = []
        done = 0
        for first, last in runs:
            for at in Repeats(self.rows, users, period, first, last).starts:
                if at < done:
                    continue
                roll = self.roll_at(users, at, period, last + period)
                folded = self.escaping(roll, users)
                if folded is not None:
                    rolls.append(roll)
                    folds += folded
                    done = roll.end
        if folds:  # they change what the rolls were found on: those are found again
            self.fold(folds)
        elif rolls:
            self.roll(rolls, users)
        return bool(rolls or folds)

    def roll_at(self, users: Users, start: int, period: int, end: int) -> _Roll:
        """The longest roll that begins at `start` and stays before `end`; it has two trips."""
        rows, most = self.rows, (end + 1 - start) // period
        low = rows.first[start]
        width = int(rows.first[start + period] - low)
        trips, looked = 2, _FIRST_TRIPS
        buffers = rows.buffers[low : low + width]
        offsets = rows.offsets[low : low + width]
        places = users.places(buffers, start, period)
        own = places != NONE
        steps = rows.offsets[low + width : low + 2 * width] - offsets
        while trips < most:
            trip = np.arange(trips, min(most, looked))
            at = slice(low + trips * width, low + (trips + len(trip)) * width)
            block = rows.buffers[at].reshape(len(trip), width)
            now = users.places(block, start + trip[:, None] * period, period)
            same = np.where(own | (now != NONE), now == places, block == buffers)
            moved = rows.offsets[at].reshape(len(trip), width) - offsets
            fits = (same & (moved == trip[:, None] * steps)).all(axis=1)
            count = len(trip) if fits.all() else int(fits.argmin())
            trips += count
            if count < len(trip):
                break
            looked *= 4
        return _Roll(start, period, trips, steps)

    def escaping(self, roll: _Roll, users: Users) -> list[Fold] | None:
        """Folds that the roll needs for buffers that outlive their iteration; None: impossible."""
        made = self.rows.made[roll.start : roll.end].reshape(roll.trips, roll.period)
        starts = np.arange(roll.start, roll.end, roll.period)[:, None]
        unused = users.last[made] == NONE
        inside = (users.first[made] >= starts) & (users.last[made] < starts + roll.period)
        stays = (made == NONE) | inside | unused
        if self.pinned:
            stays &= (made == NONE) | ~np.isin(made, list(self.pinned))
        folds = []
        for column in np.flatnonzero(~stays.all(axis=0)).tolist():
            members = made[:, column]
            if unused[:, column].any() or self.pinned.intersection(members.tolist()):
                return None
            if users.first[members].max() >= users.last[members].min():
                return None
            if not self.can_fold(members.tolist(), users):
                return None
            folds.append(Fold(tuple(members.tolist())))
        return folds

    def can_fold(self, members: list[int], users: Users) -> bool:
        """Whether the members fit one buffer and every access to them can be rewritten."""
        buffer = self.forms.buffers[members[0]]
        uses = np.concatenate([users.uses(member) for member in members])
        rows = users.row_of_use[uses]
        which = (uses - self.rows.first[rows]).tolist()
        constants: dict[tuple[int, int], set[int]] = {}
        for *key, constant in zip(
            self.rows.forms[rows].tolist(), which, self.rows.offsets[uses].tolist(), strict=True
        ):
            constants.setdefault((key[0], key[1]), set()).add(constant)
        return can_join(buffer, len(members)) and all(
            can_move(self.forms.uses_of(form)[use], buffer, found)
            for (form, use), found in constants.items()
        )

    # -- changing the program ---------------------------------------------------------------------

    def roll(self, rolls: list[_Roll], users: Users) -> None:
        """Put one row for each roll."""
        rows = self.rows
        keep, keep_uses = np.ones(len(rows), np.bool_), np.ones(len(rows.buffers), np.bool_)
        counts = np.diff(rows.first)
        new = replace(
            rows, kinds=rows.kinds.copy(), forms=rows.forms.copy(), made=rows.made.copy(),
            inside=rows.inside.copy(), buffers=rows.buffers.copy(),
        )  # fmt: skip
        for roll in rolls:
            window = rows.part(roll.start, roll.start + roll.period)
            first = int(rows.first[roll.start])
            behind = first + len(window.buffers)
            own = users.places(window.buffers, roll.start, roll.period)
            looks = (window.kinds, roll.steps, own)
            new.kinds[roll.start] = self.kind((roll.trips, *(a.tobytes() for a in looks)))
            new.forms[roll.start] = self.forms.add(Rolled(window, roll.trips, roll.steps.tolist()))
            new.made[roll.start] = NONE
            new.inside[roll.start] = window.inside.max() + 1
            new.buffers[first:behind][own != NONE] = NONE
            counts[roll.start] = behind - first
            keep[roll.start + 1 : roll.end] = False
            keep_uses[behind : int(rows.first[roll.end])] = False
        self.rows = new.kept(keep, keep_uses, counts)

    def fold(self, folds: list[Fold]) -> None:
        """Let the members of each fold be one buffer."""
        rows, buffers = self.rows, self.forms.buffers
        member_of = {m: (f, number) for f in folds for number, m in enumerate(f.members)}
        old = {f: buffers[f.members[0]] for f in folds}
        for f in folds:
            buffers[f.members[0]] = joined(old[f], len(f.members))
        is_member = np.zeros(max(rows.buffers.max(initial=0), max(member_of)) + 2, np.bool_)
        is_member[list(member_of)] = True
        touched = np.unique(rows.row_of_use()[is_member[rows.buffers]])
        kinds, forms = rows.kinds.copy(), rows.forms.copy()
        numbers, offsets = rows.buffers.copy(), rows.offsets.copy()
        moved: dict[tuple[int, tuple[int, ...]], int] = {}
        for row in touched.tolist():
            form, uses = int(rows.forms[row]), rows.uses(row)
            found = [member_of.get(b) for b in rows.buffers[uses].tolist()]
            counts = tuple(len(f[0].members) if f else 0 for f in found)
            if (form, counts) not in moved:
                into = [(old[f[0]], len(f[0].members)) if f else None for f in found]
                moved[form, counts] = self.moved(form, into)
            kinds[row] = self.kind((int(kinds[row]), counts))
            forms[row] = moved[form, counts]
            for at, use, f in zip(
                range(uses.start, uses.stop), self.forms.uses_of(form), found, strict=True
            ):
                if f:
                    (fold, number), constant = f, int(offsets[at])
                    count = len(fold.members)
                    offsets[at] = offset_in_joined(use, old[fold], count, number, constant)
                    numbers[at] = fold.members[0]
        keep = np.ones(len(rows), np.bool_)
        for row in np.flatnonzero((rows.made != NONE) & is_member[rows.made]).tolist():
            fold, number = member_of[int(rows.made[row])]
            kinds[row] = self.kind((int(kinds[row]), (len(fold.members),)))
            keep[row] = number == 0
        new = replace(rows, kinds=kinds, forms=forms, buffers=numbers, offsets=offsets)
        self.rows = new.kept(keep)

    def moved(self, form: int, into: list[tuple[Buffer, int] | None]) -> int:
        """The form with accesses to members of folds as accesses to what was made of them."""
        fold_of = iter(into)

        ranges = iter(self.forms.uses_of(form))

        def move(access: Access) -> Access:
            found, use = next(fold_of), next(ranges)
            return in_joined(Use(access, use.ranges), *found) if found else access

        moved = map_accesses(self.forms.form(form), move)
        assert not isinstance(moved, Allocate)
        return self.forms.add(moved)


def _runs(positions: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and last of each run of consecutive positions."""
    breaks = np.flatnonzero(np.diff(positions) > 1)
    firsts = np.concatenate([positions[:1], positions[breaks + 1]])
    lasts = np.concatenate([positions[breaks], positions[-1:]])
    yield from zip(firsts.tolist(), lasts.tolist(), strict=True)
