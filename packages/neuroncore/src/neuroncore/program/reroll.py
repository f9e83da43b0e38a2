"""Finds the loops of a program that has been unrolled.

    dma_copy(dst=t[:, 0:64], src=x[0:128, :])          for i in range(3):
    dma_copy(dst=t[:, 64:128], src=x[128:256, :])  →       dma_copy(dst=t[:, 64*i : 64*i + 64],
    dma_copy(dst=t[:, 128:192], src=x[256:384, :])                  src=x[128*i : 128*i + 128, :])

Statements repeat with a period when they differ in offsets only, each by a constant step. Buffers
allocated in an iteration belong to it; those that outlive it become one buffer (see fold.py). The
shortest period is rolled first, so that inner loops are found before outer ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from neuroncore._caret import Place
from neuroncore.program.affine import Affine
from neuroncore.program.fold import Fold, can_fold, fold
from neuroncore.program.naming import named_like_source
from neuroncore.program.nodes import (
    Access,
    Allocate,
    Buffer,
    Call,
    Loop,
    Program,
    Statement,
    accesses,
    map_accesses,
    walk,
)

LONGEST_PERIOD = 1024  # statements at one level; longer bodies stay unrolled
_SIGHTS = 3  # how many next occurrences of a statement suggest a period


def reroll(
    program: Program, same_line: bool = False, names: Mapping[str, str] | None = None
) -> Program:
    """The same program with periodic statements as loops; executing it gives identical bytes.

    `same_line`: only statements from the same source line are iterations of one loop, as it is
    when a kernel has run. `names` are what buffers are to be called; loops are called as in the
    source lines that their statements come from.
    """
    roller = _Roller(program, same_line)
    rolled = replace(program, body=tuple(item.node for item in roller.run()))
    return named_like_source(rolled, names or {})


@dataclass(slots=True, eq=False)
class _Item:
    """A statement at the level that is being rolled."""

    node: Statement
    kind: int
    """Equal for statements that may be iterations of each other."""
    uses: list[tuple[str, int]] = field(default_factory=list)
    """Per access: the buffer ("" and its number for one made inside), the constant offset."""
    makes: str | None = None
    """The buffer that an Allocate makes."""
    inside: int = 0
    """How deep loops are nested in it."""


@dataclass(slots=True)
class _Roll:
    """Iterations found at `start`: `trips` of `period` items each; `steps` per access."""

    start: int
    period: int
    trips: int
    steps: list[list[int]]


class _Roller:
    def __init__(self, program: Program, same_line: bool) -> None:
        self.same_line = same_line
        self.buffers: dict[str, Buffer] = program.buffers()
        constants = {b.name for b in self.buffers.values() if b.content is not None}
        self.pinned = {b.name for b in program.parameters} | constants | set(program.results)
        self.kinds: dict[Hashable, int] = {}
        self.known: dict[int, tuple[Any, int]] = {}
        """By id: a place or the attributes of a call, which many share, and its number."""
        self.tensors: dict[str, Hashable] = {}
        self.items = [self.item(s) for s in program.body]

    def run(self) -> list[_Item]:
        while any(self.sweep(period) for period in self.periods()):
            pass
        return self.items

    # -- what a statement looks like --------------------------------------------------------------

    def item(self, node: Statement) -> _Item:
        if isinstance(node, Allocate):
            return _Item(node, self.kind(self.look(node, {})), makes=node.buffer.name)
        if isinstance(node, Call):
            uses = [(a.buffer, a.offset.constant) for a in accesses(node)]
            return _Item(node, self.kind(self.look(node, {})), uses)
        made = {s.buffer.name: i for i, s in enumerate(_allocations(node))}
        own = made if isinstance(node, Loop) else {}
        kind = self.kind(self.look(node, own))
        uses = [("" if a.buffer in own else a.buffer, a.offset.constant) for a in accesses(node)]
        makes = node.buffer.name if isinstance(node, Allocate) else None
        return _Item(node, kind, uses, makes, _depth(node))

    def kind(self, looks: Hashable) -> int:
        return self.kinds.setdefault(looks, len(self.kinds))

    def look(self, node: Statement, own: dict[str, int]) -> Hashable:
        """Everything about a statement but constant offsets and which tensor it touches."""
        line = self.line(node.origin) if self.same_line and node.origin else None
        match node:
            case Loop():
                bounds = (node.variable, node.start, node.stop, node.step)
                return bounds, tuple(self.look(s, own) for s in node.body)
            case Allocate(buffer):
                return line, self.tensor(buffer)
        operands = [
            self.access(v, own) if isinstance(v, Access) else (type(v), v)
            for v in node.operands.values()
        ]
        attrs = self.number(node.attrs, lambda: tuple(node.attrs.values()))
        return line, node.instruction, node.name, attrs, *operands

    def line(self, place: Place) -> int:
        return self.number(place, lambda: (place.file, place.line, place.column))

    def number(self, shared: Any, content: Callable[[], Hashable]) -> int:
        """A number for its content; the object is kept, so that its id remains its own."""
        known = self.known.get(id(shared))
        if known is None:
            number = self.kinds.setdefault(("shared", content()), len(self.kinds))
            known = self.known[id(shared)] = shared, number
        return known[1]

    def access(self, access: Access, own: dict[str, int]) -> Hashable:
        buffer = self.buffers[access.buffer]
        which: Hashable = own.get(access.buffer)
        if which is None:
            which = self.tensor(buffer)
        moved = access.indirect
        index = (moved.kind, moved.dim, self.access(moved.index, own)) if moved else None
        return which, access.offset.terms, access.shape, access.strides, access.dtype, index

    def tensor(self, buffer: Buffer) -> Hashable:
        known = self.tensors.get(buffer.name)
        if known is None:
            name = buffer.name if buffer.name in self.pinned else None
            looks = "tensor", name, buffer.shape, buffer.dtype, buffer.space, buffer.address
            known = self.kinds.setdefault(looks, len(self.kinds))
            known = self.tensors[buffer.name] = "tensor", known
        return known

    # -- finding iterations -----------------------------------------------------------------------

    def periods(self) -> list[int]:
        """Distances at which statements recur, shortest first."""
        seen: dict[int, list[int]] = defaultdict(list)
        found: set[int] = set()
        for at, item in enumerate(self.items):
            before = seen[item.kind]
            found |= {at - earlier for earlier in before}
            before.append(at)
            del before[:-_SIGHTS]
        return sorted(p for p in found if p <= LONGEST_PERIOD)

    def sweep(self, period: int) -> bool:
        """Roll or fold everything that repeats with this period; whether anything did."""
        kinds = np.array([item.kind for item in self.items])
        same = np.flatnonzero(kinds[period:] == kinds[:-period])
        used = self.users()
        rolls: list[_Roll] = []
        folds: list[Fold] = []
        done = 0
        for first, last in _runs(same):
            at = max(first, done)
            while at + period <= last + 1:
                roll = self.roll_at(at, period, last + period)
                folded = None if roll is None else self.escaping(roll, used)
                if roll is None or folded is None:
                    at += 1
                    continue
                rolls.append(roll)
                folds += folded
                at = done = roll.start + roll.period * roll.trips
        if folds:  # they change what the rolls were found on: those are found again
            self.fold(folds)
        else:
            self.roll(rolls)
        return bool(rolls or folds)

    def users(self) -> dict[str, list[int]]:
        """Buffer → positions of the items that touch it."""
        found: dict[str, list[int]] = defaultdict(list)
        for at, item in enumerate(self.items):
            for name in dict.fromkeys(name for name, _ in item.uses):
                found[name].append(at)
        return found

    def roll_at(self, start: int, period: int, end: int) -> _Roll | None:
        """The longest roll that begins at `start` and stays before `end`."""
        window = self.items[start : start + period]
        locals_ = self.made(start, period)
        steps: list[list[int]] | None = None
        trips = 1
        while start + (trips + 1) * period <= end + 1:
            at = start + trips * period
            found = self.difference(window, locals_, at, period, trips)
            if found is None or (steps is not None and found != steps):
                break
            steps, trips = found, trips + 1
        return None if steps is None else _Roll(start, period, trips, steps)

    def made(self, start: int, period: int) -> dict[str, int]:
        """The buffers that these items allocate, by position."""
        items = self.items[start : start + period]
        return {item.makes: i for i, item in enumerate(items) if item.makes}

    def difference(
        self, window: list[_Item], first: dict[str, int], at: int, period: int, trip: int
    ) -> list[list[int]] | None:
        """How far each access has moved per trip since the window; None: this is no iteration."""
        later = self.made(at, period)
        steps = []
        for item, other in zip(window, self.items[at : at + period], strict=True):
            row = []
            for (name, constant), (new_name, new_constant) in zip(
                item.uses, other.uses, strict=True
            ):
                if name in first or new_name in later:
                    if first.get(name) != later.get(new_name):
                        return None
                elif name != new_name:
                    return None
                step, rest = divmod(new_constant - constant, trip)
                if rest:
                    return None
                row.append(step)
            steps.append(row)
        return steps

    def escaping(self, roll: _Roll, used: dict[str, list[int]]) -> list[Fold] | None:
        """Folds that the roll needs for buffers that outlive their iteration; None: impossible."""
        folds = []
        for i in range(roll.period):
            starts = range(roll.start, roll.start + roll.period * roll.trips, roll.period)
            names = [self.items[s + i].makes for s in starts]
            if names[0] is None:
                continue
            members = [name for name in names if name is not None]
            if all(
                self.stays(n, s, roll.period, used) for n, s in zip(members, starts, strict=True)
            ):
                continue
            lives = [used[n] for n in members]
            if not all(lives) or self.pinned & set(members):
                return None
            together = max(u[0] for u in lives) < min(u[-1] for u in lives)
            if not together or not can_fold(self.items_of(lives), self.buffers, members):
                return None
            folds.append(Fold(tuple(members)))
        return folds

    def stays(self, name: str, start: int, period: int, used: dict[str, list[int]]) -> bool:
        touched = used[name]
        inside = not touched or (start <= touched[0] and touched[-1] < start + period)
        return inside and name not in self.pinned

    def items_of(self, lives: list[list[int]]) -> Iterator[Statement]:
        return (self.items[at].node for at in sorted({at for u in lives for at in u}))

    # -- changing the program ---------------------------------------------------------------------

    def roll(self, rolls: list[_Roll]) -> None:
        made: list[_Item] = []
        at = 0
        for roll in rolls:
            made += self.items[at : roll.start]
            made.append(self.item(self.loop(roll)))
            at = roll.start + roll.period * roll.trips
        self.items = made + self.items[at:]

    def fold(self, folds: list[Fold]) -> None:
        known = {id(item.node): item for item in self.items}
        body = fold([item.node for item in self.items], self.buffers, folds)
        self.items = [known.get(id(node)) or self.item(node) for node in body]

    def loop(self, roll: _Roll) -> Loop:
        window = self.items[roll.start : roll.start + roll.period]
        variable = f".{max(item.inside for item in window)}"  # named at the end
        body = tuple(
            _moving(item.node, variable, row) for item, row in zip(window, roll.steps, strict=True)
        )
        return Loop(variable, 0, roll.trips, body, origin=window[0].node.origin)


def _moving(node: Statement, variable: str, steps: list[int]) -> Statement:
    """The statement with each access moving by its step per trip."""
    if not any(steps):
        return node
    left = iter(steps)

    def move(access: Access) -> Access:
        return replace(access, offset=access.offset + Affine.variable(variable, next(left)))

    return map_accesses(node, move)


def _allocations(node: Statement) -> list[Allocate]:
    return [s for s in walk((node,)) if isinstance(s, Allocate)]


def _depth(node: Statement) -> int:
    return 1 + max(map(_depth, node.body), default=0) if isinstance(node, Loop) else 0


def _runs(positions: np.ndarray) -> Iterator[tuple[int, int]]:
    """First and last of each run of consecutive positions."""
    breaks = np.flatnonzero(np.diff(positions) > 1)
    firsts = np.concatenate([positions[:1], positions[breaks + 1]])
    lasts = np.concatenate([positions[breaks], positions[-1:]])
    yield from zip(firsts.tolist(), lasts.tolist(), strict=True)
