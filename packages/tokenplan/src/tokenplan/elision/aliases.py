"""Tensors that may share bytes: their accesses stay in order, whichever bytes they access."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tokenplan.elision.claims import ClaimError, known
from tokenplan.elision.elide import Elision
from tokenplan.graph.token_graph import ALIAS, KEPT, Claim, Distance, Edge, MayAlias
from tokenplan.kernel.model import Kernel, Mode, shared_loops
from tokenplan.rules import distinct_buffers, empty_order, kind_of
from tokenplan.rules.candidate_orders import Place, places


def with_aliases(kernel: Kernel, elision: Elision, claims: Iterable[Claim]) -> Elision:
    """The elision with every order between tensors that may share bytes.

    Raises ClaimError for a tensor that is not there, and for two that lie apart by themselves.
    """
    for claim in dict.fromkeys(claim for claim in claims if isinstance(claim, MayAlias)):
        elision = _with_alias(kernel, elision, claim)
    return elision


def _with_alias(kernel: Kernel, elision: Elision, claim: MayAlias) -> Elision:
    assumed = _disjointness_assumption(kernel, claim)
    found: dict[tuple[str, str, Distance, str], None] = {}
    rules, conflicts = Counter(elision.counts.rules), elision.counts.conflicts
    for source, sink, distance in _orders(kernel, claim):
        rules[distinct_buffers.NAME] -= 1
        if distance is None:
            rules[empty_order.NAME] += 1
            continue
        conflicts += 1
        kind = kind_of(_as_write(source), _as_write(sink))
        found.setdefault((source.op.id, sink.op.id, distance, kind))
    counts = replace(elision.counts, rules=dict(sorted((+rules).items())), conflicts=conflicts)
    edges = tuple(
        Edge(source, sink, distance, kind, KEPT, ALIAS, assumes=(claim.text,))
        for source, sink, distance, kind in found
    )
    assumes = {*elision.assumes, claim.text} - {assumed}
    return Elision((*elision.edges, *edges), counts, tuple(sorted(assumes)))


def _disjointness_assumption(kernel: Kernel, claim: MayAlias) -> str:
    """The assumption that the two share no byte, which is one no more."""
    one, other = (kernel.buffers[known(name, kernel.buffers, "tensor")] for name in claim.tensors)
    parted = distinct_buffers.assumed(one, other)
    if one.id == other.id or not parted:
        raise ClaimError(
            f"{one.id} and {other.id} cannot share bytes by an alias",
            expected="two parameters, or a tensor without an address and a memory with fixed ones",
            got="one tensor" if one.id == other.id else "tensors that the kernel allocates apart",
        )
    return parted[0]


def _orders(kernel: Kernel, claim: MayAlias) -> Iterator[tuple[Place, Place, Distance | None]]:
    """Accesses to one and the other whose order matters, as they stand and from iteration to
    iteration; None for the distance where no two iterations have the order."""
    of: dict[str, list[Place]] = defaultdict(list)
    for place in places(kernel):
        of[place.access.buffer].append(place)
    one, other = claim.tensors
    for a in of[one]:
        for b in of[other]:
            if a.access.mode is b.access.mode is Mode.read:
                continue
            first, second = (a, b) if a.at <= b.at else (b, a)
            if first.at < second.at:
                yield first, second, _least(first, second, later=False)
            if first.group == second.group >= 0:
                yield second, first, _least(second, first, later=True)
                if first.at == second.at:
                    yield first, second, _least(first, second, later=True)


def _least(source: Place, sink: Place, later: bool) -> Distance | None:
    """The nearest iterations of this order."""
    trips = {loop: last + 1 for loop, (_, last) in source.trips.items()}
    shared = shared_loops(source.op, sink.op)
    if any(trips[loop] < 1 for loop in (*source.op.loops, *sink.op.loops)):
        return None
    if not later:
        return (0,) * len(shared)
    innermost = max((n for n, loop in enumerate(shared) if trips[loop] > 1), default=None)
    return None if innermost is None else tuple(int(n == innermost) for n in range(len(shared)))


def _as_write(place: Place) -> Mode:
    """Accumulations commute only where they add to the same elements."""
    return Mode.read if place.access.mode is Mode.read else Mode.write
