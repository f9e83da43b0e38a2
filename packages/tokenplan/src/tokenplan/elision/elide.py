"""Elision: for each possible order, whether it is needed, and by which rule."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from itertools import product

from tokenplan import rules
from tokenplan.elision.tested_pairs import Candidate, all_pairs, select_pairs
from tokenplan.graph.token_graph import KEPT, REMOVED, Counts, Distance, Edge, Witness
from tokenplan.graph.wording import index_of
from tokenplan.kernel.addresses import is_memory
from tokenplan.kernel.model import Buffer, Kernel, Mode, commute
from tokenplan.rules import (
    BUDGET,
    Conflict,
    Pair,
    Removed,
    Verdict,
    commuting,
    distinct_buffers,
    empty_order,
)
from tokenplan.rules.candidate_orders import Part, Place, count_pairs, places, total_order
from tokenplan.rules.distinct_buffers import assumed

EXHAUSTIVE = 20_000
"""So many pairs, of the tensors with the fewest, are tested one by one, and each removed order is
listed."""

_STEEP = {name: n for n, name in enumerate(rules.NAMES)}
_STRONGEST = {"RAW": 0, "accumulate": 1, "WAW": 2, "WAR": 3}

_MODES: dict[str, list[tuple[Mode, Mode]]] = defaultdict(list)
"""Which modes of source and sink make an edge of this kind."""
for _a, _b in product(Mode, Mode):
    if not commute(_a, _b):
        _MODES[rules.kind_of(_a, _b)].append((_a, _b))

Key = tuple[str, str, str, str]
"""Source, sink, buffer, kind."""


@dataclass(frozen=True, slots=True)
class Elision:
    """Edges, all needed ones as kept, and what was counted and assumed on the way."""

    edges: tuple[Edge, ...]
    counts: Counts
    assumes: tuple[str, ...]


def elide(kernel: Kernel, budget: int = BUDGET, exhaustive: int = EXHAUSTIVE) -> Elision:
    """The orders that a conflict requires, and the orders that provably none does."""
    search = _Search(kernel, budget)
    everything = places(kernel)
    sized = [(count_pairs(group), group) for group in search.bulk(everything)]
    left = exhaustive
    for size, group in sorted(sized, key=lambda entry: entry[0]):
        left -= size
        if left >= 0:
            search.test_all(group)
        else:
            search.test_near(group)
    return search.result(everything)


@dataclass(slots=True)
class _Found:
    """All pairs of one key so far; `at` are the positions of both operations."""

    at: tuple[int, int]
    least: Distance
    rule: str = empty_order.NAME
    needed: Conflict | None = None
    assumes: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Search:
    kernel: Kernel
    budget: int
    removed: Counter[str] = field(default_factory=Counter)
    conflicts: int = 0
    found: dict[Key, _Found] = field(default_factory=dict)
    listed: dict[str, list[Key]] = field(default_factory=lambda: defaultdict(list))
    """The keys of `found`, by buffer."""
    assumes: set[str] = field(default_factory=set)
    straight: dict[tuple[Part, Part], Verdict] = field(default_factory=dict)
    """Of parts that are accessed outside of loops; a verdict with assumptions names operations."""

    # -- what modes and buffers decide alone ------------------------------------------------------

    def bulk(self, everything: list[Place]) -> list[list[Place]]:
        """Counts pairs of distinct buffers and pairs that commute; the rest, by buffer."""
        grouped: dict[str, list[Place]] = defaultdict(list)
        for place in everything:
            grouped[place.access.buffer].append(place)
        same = sum(map(count_pairs, grouped.values()))
        self.removed[distinct_buffers.NAME] = count_pairs(everything) - same
        for group in grouped.values():
            self.removed[commuting.NAME] += _commuting(group, count_pairs)
        written = {
            name: group
            for name, group in grouped.items()
            if any(place.access.mode is not Mode.read for place in group)
        }
        self._assume_distinct(list(grouped), written)
        return list(written.values())

    def _assume_distinct(self, names: list[str], written: dict[str, list[Place]]) -> None:
        """Two buffers, one of which is written, are taken to share no byte."""
        buffers = [self.kernel.buffers[name] for name in names]
        known = [b for b in buffers if b.is_parameter or is_memory(b)]
        for one in known:
            others = buffers if is_memory(one) else known
            for other in others:
                if one.id != other.id and (one.id in written or other.id in written):
                    self.assumes.update(assumed(one, other))

    # -- the rest, pair by pair -------------------------------------------------------------------

    def test_all(self, group: list[Place]) -> None:
        """Every pair of one buffer that does not commute."""
        for source, sink, later in all_pairs(group):
            if not commute(source.access.mode, sink.access.mode):
                self.test(source, sink, later)

    def test_near(self, group: list[Place]) -> None:
        """The pairs that may overlap and that others do not imply, then the rest of each edge
        that is listed."""
        tested: set[Candidate] = set()

        def test(source: Place, sink: Place, later: bool) -> Verdict:
            tested.add((source, sink, later))
            return self.test(source, sink, later)

        is_one = _has_one_pair_each(group)
        disjoint = select_pairs(group, self.test if is_one else test)
        if not is_one:
            self._complete(group, tested)
        self.removed += disjoint
        if disjoint:
            self.assumes.update(text for place in group for text in rules.assumptions(place))

    def test(self, source: Place, sink: Place, later: bool) -> Verdict:
        """One pair that does not commute; what is found is remembered."""
        a, b = source.access, sink.access
        verdict, nominal = self._verdict(source, sink, later)
        key = (source.op.id, sink.op.id, a.buffer, rules.kind_of(a.mode, b.mode))
        found = self.found.get(key)
        if found is None:
            found = self.found[key] = _Found((source.at, sink.at), nominal)
            self.listed[a.buffer].append(key)
        if isinstance(verdict.answer, Removed):
            self.removed[verdict.rule] += 1
        self._take(found, verdict)
        return verdict

    def _take(self, found: _Found, verdict: Verdict) -> None:
        """One more answer on the pairs of an edge."""
        answer, nearest = verdict.answer, found.needed
        if isinstance(answer, Removed):
            if answer.assumes:
                self.assumes.update(answer.assumes)
                found.assumes.update(answer.assumes)
            if nearest is None and _STEEP[verdict.rule] > _STEEP[found.rule]:
                found.rule = verdict.rule
            return
        self.conflicts += 1
        if nearest is None or answer.distance < nearest.distance:
            found.needed, found.rule = answer, verdict.rule

    def _complete(self, group: list[Place], tested: Set[Candidate]) -> None:
        """Checks the pairs of listed edges whose order others imply: an edge represents all.

        A pair that is disjoint is not counted: `select_pairs` may have done so.
        """
        count: Counter[str] = Counter()
        accesses: dict[tuple[str, Mode], list[Place]] = defaultdict(list)
        for place in group:
            count[place.op.id] += 1
            accesses[place.op.id, place.access.mode].append(place)
        for key in self.listed[group[0].access.buffer]:
            source, sink, _, kind = key
            if count[source] == count[sink] == 1:
                continue
            found = self.found[key]
            later = found.at[0] >= found.at[1]
            for a, b in _MODES[kind]:
                for one, other in product(
                    accesses.get((source, a), ()), accesses.get((sink, b), ())
                ):
                    if (one, other, later) not in tested:
                        self._take(found, self._verdict(one, other, later)[0])

    def _verdict(self, source: Place, sink: Place, later: bool) -> tuple[Verdict, Distance]:
        """The verdict of the rules on a pair, and its least distance were there a conflict.

        Outside of loops the two parts decide, so they are looked at once.
        """
        parts = source.part, sink.part
        if source.op.loops or sink.op.loops:
            pair = Pair(source, sink, later)
            return rules.decide(pair, self.budget), pair.nominal
        verdict = self.straight.get(parts)
        if verdict is None:
            verdict = rules.decide(Pair(source, sink, later), self.budget)
            if not (isinstance(verdict.answer, Removed) and verdict.answer.assumes):
                self.straight[parts] = verdict
        return verdict, ()

    # -- what came of it --------------------------------------------------------------------------

    def result(self, everything: list[Place]) -> Elision:
        """The edges in program order, and the account of all pairs."""
        pairs = count_pairs(everything)
        known = {name: count for name, count in sorted(self.removed.items()) if count}
        untested = pairs - sum(known.values()) - self.conflicts
        steps = len(total_order(self.kernel))
        ordered = sorted(self.found.items(), key=_position)
        edges = [
            _edge(key, found, self.kernel.buffers)
            for key, found in ordered
            if found.needed is not None or found.rule != empty_order.NAME
        ]
        counts = Counts(steps, pairs, known, untested, self.conflicts)
        return Elision(tuple(edges), counts, tuple(sorted(self.assumes)))


def _has_one_pair_each(group: list[Place]) -> bool:
    """Whether no two pairs of its accesses are of the same operations and kind."""
    modes = [(place.at, place.access.mode) for place in group]
    return len(set(modes)) == len(modes) and all(mode is not Mode.accumulate for _, mode in modes)


def _commuting(group: list[Place], count: Callable[[list[Place]], int]) -> int:
    """The same count, of pairs of two reads or two accumulations alone."""
    by_mode = [[p for p in group if p.access.mode is m] for m in (Mode.read, Mode.accumulate)]
    return sum(map(count, by_mode))


def _position(item: tuple[Key, _Found]) -> tuple[tuple[int, int], str, int]:
    (_, _, buffer, kind), found = item
    return found.at, buffer, _STRONGEST[kind]


def _edge(key: Key, found: _Found, buffers: Mapping[str, Buffer]) -> Edge:
    source, sink, buffer, kind = key
    assumes, needed = tuple(sorted(found.assumes)), found.needed
    if needed is None:
        status, distance, witness = REMOVED, found.least, None
    else:
        status, distance = KEPT, needed.distance
        witness = _witness(buffers[buffer], needed)
    return Edge(source, sink, distance, kind, status, found.rule, buffer, witness, assumes)


def _witness(buffer: Buffer, found: Conflict) -> Witness | None:
    if found.byte is None:
        return None
    index = index_of(buffer, found.byte)
    return Witness(buffer.id, found.byte, index, found.source, found.sink)
