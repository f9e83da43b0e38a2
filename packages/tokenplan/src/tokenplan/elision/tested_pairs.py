"""Tensors with many accesses: which pairs are tested.

A write that covers an earlier access replaces it: what conflicts with the earlier one later on,
conflicts with the write, too, and waits for it; so do several writes that cover it together.
Outside of loops, an operation that waits for another also waits for all that the other one waits
for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from math import prod

import numpy as np

from tokenplan.elision.overlap_candidates import WRITE, Digits, Nearby
from tokenplan.kernel.model import Mode
from tokenplan.rules import NAMES, Pair, Removed, Verdict, disjoint_boxes
from tokenplan.rules.candidate_orders import Part, Place

Candidate = tuple[Place, Place, bool]
"""Source, sink, and whether the sink is in a later iteration."""


Test = Callable[[Place, Place, bool], Verdict]

MOST_PARTS = 4_000
"""Of so many parts of a tensor or fewer it is remembered which are disjoint."""

FIRST, FEW = 6, 32
"""The number of sources tested one by one before the operations that they wait for are dropped: the
first time, and later on.
"""


def all_pairs(group: list[Place]) -> Iterator[Candidate]:
    """Every pair of accesses to one buffer, in program order, then from later iterations."""
    for n, sink in enumerate(group):
        for source in group[:n]:
            if source.at != sink.at:
                yield source, sink, False
        if sink.group < 0:
            continue
        for other in group[: n + 1]:
            if other.group == sink.group:
                yield sink, other, True
                if other.at == sink.at and other is not sink:
                    yield other, sink, True


def select_pairs(group: list[Place], test: Test) -> Counter[str]:
    """Tests the pairs of one buffer that may overlap and whose order no others imply.

    How many of the rest are disjoint, by rule.
    """
    state = _Selection(group, test)
    state.forward()
    state.backward()
    return state.disjoint


class _Selection:
    def __init__(self, group: list[Place], test: Test) -> None:
        self.group, self.test = group, test
        self.disjoint: Counter[str] = Counter()
        modes = list(Mode)
        self.mode_of = [modes.index(place.access.mode) for place in group]
        self.mode = np.array(self.mode_of, np.int8)
        self.op = np.unique([place.at for place in group], return_inverse=True)[1]
        """Number of each access's operation."""
        self.op_of: list[int] = self.op.tolist()
        self.straight = [not place.op.loops for place in group]
        self.is_straight = np.array(self.straight, bool)
        parts = list(dict.fromkeys([place.part for place in group]))
        number = {part: n for n, part in enumerate(parts)}
        self.part_of = [number[place.part] for place in group]
        self.part = np.array(self.part_of, np.int64)
        self.is_box = [place.part.is_box for place in group]
        bounds = np.array([part.bounds for part in parts], np.int64)[self.part]
        self.digits = [(low.copy(), high.copy()) for low, high in bounds.transpose(1, 2, 0)]
        """Bounds of every access, digit by digit."""
        self.last = np.ones(len(group), bool)
        """No later write of the same loops covers it."""
        self.first = np.ones(len(group), bool)
        """No earlier write of the same loops covers it."""
        self.nearby = Nearby(self.mode, self.digits)
        """Accesses that none covers so far."""
        self.ancestors = Ancestors(len(group))
        self.overwritten = Overwritten(self.digits)
        self.rules: dict[int, np.ndarray] = {}
        """For a part outside of loops: by which rule each part is disjoint from it; 0: none yet."""
        self.num_parts = len(parts)
        self.covers: dict[tuple[Part, Part], tuple[bool, bool]] = {}

    # -- the same iteration -----------------------------------------------------------------------

    def forward(self) -> None:
        decided = most = 0
        starts = np.flatnonzero(np.diff(self.op, prepend=-1)).tolist()
        for begin, end in zip(starts, [*starts[1:], len(self.group)], strict=True):
            self._order(begin, end)
            self.nearby.add(begin, end)
            if self.nearby.count <= most:
                continue
            self.nearby.compress()
            if self.nearby.count > 2 * decided + FEW:
                decided = self._drop_overwritten()
            self.ancestors.keep(set(self.op[self.nearby.numbers].tolist()))
            most = 2 * self.nearby.count + FEW

    def _drop_overwritten(self) -> int:
        """Drops accesses of which every byte was written again; returns the number that remain."""
        held = self.nearby.numbers
        again = [self.straight[n] and self.overwritten.covers(n) for n in held.tolist()]
        self._drop(held[again])
        self.nearby.compress()
        return self.nearby.count

    def _drop(self, covered: np.ndarray) -> None:
        covered = covered[self.last[covered]]
        if len(covered):
            self.last[covered] = False
            self.nearby.drop(covered)

    def _order(self, begin: int, end: int) -> None:
        """Tests the accesses of one operation with earlier ones, the latest of these first."""
        near = self._near(begin, end)
        wide, last, left = end - begin, end - 1, near
        is_straight = self.straight[begin]
        waits, known, few = [], 0, FIRST
        while len(left):
            for code in left[:few].tolist():
                source, behind = divmod(code, wide)
                op = self.op_of[source]
                if known >> op & 1 or not self._conflict(source, last - behind):
                    continue
                if is_straight and self.straight[source]:
                    waits.append(op)
                    known |= self.ancestors.rows[op]
            left, few = left[few:], FEW
            if len(left):
                left = left[self.ancestors.outside(known, self.op[left // wide])]
        if is_straight:
            self.ancestors.add(self.op_of[begin], waits, known)
            self._cover(near, begin, end)

    def _conflict(self, source: int, sink: int) -> bool:
        verdict = self.test(self.group[source], self.group[sink], False)
        if not isinstance(verdict.answer, Removed):
            self._note_covers(source, sink)
            return True
        is_straight = self.straight[source] and self.straight[sink]
        if is_straight and self.num_parts <= MOST_PARTS and not verdict.answer.assumes:
            part = int(self.part[sink])
            if part not in self.rules:
                self.rules[part] = np.zeros(self.num_parts, np.int8)
            self.rules[part][self.part[source]] = 1 + NAMES.index(verdict.rule)
        return False

    # -- later iterations -------------------------------------------------------------------------

    def backward(self) -> None:
        inside: dict[int, list[int]] = defaultdict(list)
        for n, place in enumerate(self.group):
            if place.group >= 0:
                inside[place.group].append(n)
        for members in inside.values():
            sinks = np.array([n for n in members if self.first[n]], np.int64)
            for n in members:
                if self.last[n]:
                    for at in self._later(sinks[self.op[sinks] <= self.op[n]], n):
                        self.test(self.group[n], self.group[at], True)

    def _later(self, among: np.ndarray, n: int) -> np.ndarray:
        """The accesses of `among` that may conflict with n; counts the others not commuting."""
        if self.mode[n] != WRITE:
            among = among[self.mode[among] != self.mode[n]]
        near = among
        for low, high in self.digits:
            near = near[(low[near] < high[n]) & (high[near] > low[n])]
        self.disjoint[disjoint_boxes.NAME] += len(among) - len(near)
        return near

    # -- what is near, what covers ----------------------------------------------------------------

    def _near(self, begin: int, end: int) -> np.ndarray:
        """Earlier accesses that may conflict with these, as `Nearby.near` gives them; counts the
        ones that provably do not.
        """
        near, disjoint = self.nearby.near(begin, end)
        self.disjoint[disjoint_boxes.NAME] += disjoint
        if not len(near) or self.rules.keys().isdisjoint(self.part_of[begin:end]):
            return near
        sources, behind = np.divmod(near, end - begin)
        by = np.zeros(len(near), np.int8)
        for n in range(begin, end):
            rules, mine = self.rules.get(self.part_of[n]), behind == end - 1 - n
            if rules is not None:
                by[mine] = rules[self.part[sources[mine]]]
        for rule, count in enumerate(np.bincount(by)[1:].tolist()):
            self.disjoint[NAMES[rule]] += count
        return near[by == 0]

    def _cover(self, near: np.ndarray, begin: int, end: int) -> None:
        """No need to look again at what the writes of an operation outside of loops cover."""
        for n in range(begin, end):
            if not self.is_box[n] or self.mode_of[n] != WRITE:
                continue
            self.overwritten.write(n)
            mine = near[near % (end - begin) == end - 1 - n] // (end - begin)
            for low, high in self.digits:
                mine = mine[(low[mine] >= low[n]) & (high[mine] <= high[n])]
            self._drop(mine[self.is_straight[mine]])

    def _note_covers(self, source: int, sink: int) -> None:
        if self.straight[sink] and (
            self.is_box[sink] or self.mode_of[sink] != WRITE or not self._is_inside(source, sink)
        ):
            return  # `_cover` handles boxes; outside of loops the first ones are not needed
        one, other = self.group[source], self.group[sink]
        if one.op.loops != other.op.loops:
            return
        by_sink, by_source = self._covers(one, other)
        if by_sink and self.mode_of[sink] == WRITE:
            self._drop(np.array([source]))
        if by_source and self.mode_of[source] == WRITE:
            self.first[sink] = False

    def _covers(self, one: Place, other: Place) -> tuple[bool, bool]:
        """Whether the other covers the one, and the one the other, in every iteration."""
        both = one.part, other.part
        if both not in self.covers:
            pair = Pair(one, other, False)
            exact = pair.is_exact
            self.covers[both] = exact and _covers(pair, True), exact and _covers(pair, False)
        return self.covers[both]

    def _is_inside(self, source: int, sink: int) -> bool:
        """Whether the bounds of one are inside the other's."""
        inner, outer = self.group[source].part.bounds, self.group[sink].part.bounds
        ends = zip(inner, outer, strict=True)
        return all(first <= low and high <= end for (low, high), (first, end) in ends)


def _covers(pair: Pair, by_sink: bool) -> bool:
    """Whether, in every iteration, one end accesses all bytes that the other does."""
    for a, b in pair.levels:
        big, small = (b, a) if by_sink else (a, b)
        if big.offset.terms != small.offset.terms:
            return False
        if big.steps and (big.steps, big.offset, big.extent) != (
            small.steps, small.offset, small.extent
        ):  # fmt: skip
            return False
        ahead = small.offset.constant - big.offset.constant
        reach = small.extent + sum((n - 1) * c for n, c in small.steps)
        if not big.steps and not 0 <= ahead <= big.extent - reach:
            return False
    return True


# -- what was written again ------------------------------------------------------------------------


MOST_CELLS = 2**16


class Overwritten:
    """The last write of each cell of the grid that the ends of all boxes make.

    With too many cells nothing is remembered, and nothing counts as overwritten.
    """

    def __init__(self, digits: Digits) -> None:
        cuts = [np.unique(np.concatenate(both)) for both in digits]
        self.low = [
            np.searchsorted(c, low).tolist() for c, (low, _) in zip(cuts, digits, strict=True)
        ]
        self.high = [np.searchsorted(c, h).tolist() for c, (_, h) in zip(cuts, digits, strict=True)]
        shape = [len(c) - 1 for c in cuts]
        self.by = np.full(shape, -1, np.int32) if prod(shape) <= MOST_CELLS else None

    def write(self, access: int) -> None:
        """An access wrote every byte of its box."""
        if self.by is not None:
            self.by[self._cells(access)] = access

    def covers(self, access: int) -> bool:
        """Whether each byte of the access's box was written by a later access."""
        return self.by is not None and bool(self.by[self._cells(access)].min() > access)

    def _cells(self, access: int) -> tuple[slice, ...]:
        ends = zip(self.low, self.high, strict=True)
        return tuple([slice(low[access], high[access]) for low, high in ends])


# -- what operations wait for ----------------------------------------------------------------------


class Ancestors:
    """A set of bits per operation; operations go by their number."""

    def __init__(self, operations: int) -> None:
        self.bytes = operations // 8 + 1
        self.rows: dict[int, int] = {}

    def add(self, op: int, sources: Iterable[int], known: int) -> None:
        """The operation waits for these, and for all that they wait for, which is `known`."""
        for source in sources:
            known |= 1 << source
        self.rows[op] = known

    def keep(self, ops: Iterable[int]) -> None:
        """Drop the rows of all other operations."""
        self.rows = {op: self.rows[op] for op in ops if op in self.rows}

    def outside(self, row: int, ops: np.ndarray) -> np.ndarray:
        """Positions of the operations that are not in a row."""
        if not len(ops):
            return ops
        row_bytes = np.frombuffer(row.to_bytes(self.bytes, "little"), np.uint8)
        bits = np.unpackbits(row_bytes, bitorder="little")
        return (bits[ops] == 0).nonzero()[0]
