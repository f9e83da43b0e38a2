"""Claims of the user about loops, checked; and orders that the user requests."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches

from neuroncore.errors import LaunchError
from tokenplan import rules
from tokenplan.elision.elide import Elision
from tokenplan.graph.diagnostics import Diagnostic
from tokenplan.graph.token_graph import (
    ALIAS,
    JOIN,
    KEPT,
    Claim,
    Distance,
    Edge,
    Join,
    MayAlias,
    Parallel,
    Pipeline,
)
from tokenplan.graph.wording import at_iterations, element, op_name
from tokenplan.kernel.model import Kernel, Mode, Op, commute, shared_loops
from tokenplan.rules import Conflict, Pair, distinct_buffers, empty_order, kind_of
from tokenplan.rules.candidate_orders import Place, places

DEEPEST = 2**31
"""Iterations in flight, at most."""


class ClaimError(LaunchError):
    """A claim of a loop or operation that is not there."""


def joins(kernel: Kernel, claims: Iterable[Claim]) -> Iterator[Edge]:
    """An edge for each `join`, in one iteration or, against program order, from each to the next.

    Raises ClaimError for unknown operations, and for an order that could never hold.
    """
    ops = {op.id: (n, op) for n, op in enumerate(kernel.ops())}
    for claim in claims:
        if not isinstance(claim, Join):
            continue
        before, source = ops[known(claim.source, ops, "operation")]
        after, sink = ops[known(claim.sink, ops, "operation")]
        zero = (0,) * len(shared_loops(source, sink))
        if before < after:
            yield Edge(source.id, sink.id, zero, JOIN, KEPT, JOIN)
            continue
        if not zero:
            raise ClaimError(
                f"{sink.id} cannot wait for {source.id}",
                expected="the operation that comes first, then the one that waits",
                got=f"{source.id} stands behind {sink.id}, and no loop repeats both",
            )
        yield Edge(source.id, sink.id, (*zero[1:], 1), JOIN, KEPT, JOIN)


def check_claims(kernel: Kernel, claims: Iterable[Claim], budget: int) -> list[Diagnostic]:
    """E2 for a loop whose iterations conflict, E3 for one whose iterations conflict too soon.

    Raises ClaimError for an unknown loop and for a pipeline without depth.
    """
    found, claims = [], tuple(claims)
    aliases = {claim.tensors for claim in claims if isinstance(claim, MayAlias)}
    for claim in claims:
        if isinstance(claim, (Join, MayAlias)):
            continue
        loop = known(claim.loop, kernel.loops(), "loop")
        if isinstance(claim, Pipeline) and not 1 <= claim.depth <= DEEPEST:
            raise ClaimError(
                f"a pipeline of depth {claim.depth} is none", expected=f"1 to {DEEPEST} iterations"
            )
        nearest = _nearest(kernel, loop, budget, aliases)
        if nearest is None:
            continue
        pair, conflict = nearest
        distance = conflict.distance[pair.shared.index(loop)]
        if isinstance(claim, Parallel):
            text = f"iterations of loop {loop} are claimed to be parallel, but {{}}"
            found.append(_diagnostic("E2", text, kernel, pair, conflict))
        elif distance < claim.depth:
            text = (
                f"{claim.depth} iterations of loop {loop} are claimed to be in flight, but {{}}: "
                f"only pipeline({distance}) holds"
            )
            found.append(_diagnostic("E3", text, kernel, pair, conflict))
    return found


def known(name: str, names: Iterable[str], kind: str) -> str:
    """The name, if it is one of these; ClaimError otherwise."""
    names = list(names)
    if name in names:
        return name
    near = get_close_matches(name, names, n=1)
    raise ClaimError(
        f"the kernel has no {kind} {name}",
        expected=f"one of {', '.join(names) or 'none: it has no ' + kind}",
        hint=f"did you mean {near[0]}?" if near else None,
    )


def _nearest(
    kernel: Kernel, loop: str, budget: int, aliases: Collection[tuple[str, str]]
) -> tuple[Pair, Conflict] | None:
    """The two accesses that overlap in the nearest iterations of the loop, the first such two."""
    best: tuple[Pair, Conflict] | None = None
    for a, b in _inside(kernel, loop, aliases):
        pair = Pair(a, b, a.at >= b.at)
        at = pair.shared.index(loop)
        if a.access.buffer == b.access.buffer:
            found = rules.carried_by(pair, loop, budget)
        else:
            found = _might_meet(pair, at)
        if found and (best is None or found.distance[at] < best[1].distance[at]):
            best = pair, found
    return best


def _might_meet(pair: Pair, at: int) -> Conflict | None:
    """Of two tensors that may share any bytes: iterations of shared loop `at` that follow."""
    loops = (*pair.source.loops, *pair.sink.loops)
    if pair.trips[pair.shared[at]][1] < 1 or any(pair.trips[name][1] < 0 for name in loops):
        return None
    return Conflict(tuple(int(n == at) for n in range(len(pair.shared))))


def _inside(
    kernel: Kernel, loop: str, aliases: Collection[tuple[str, str]]
) -> Iterator[tuple[Place, Place]]:
    """Pairs of accesses in the loop to one buffer that do not commute, or to two that may share
    bytes and not both reads; in any order."""
    inside = [place for place in places(kernel) if loop in place.op.loops]
    for a in inside:
        for b in inside:
            one, other = a.access, b.access
            if one.buffer == other.buffer:
                matters = not commute(one.mode, other.mode)
            else:
                matters = not one.mode is other.mode is Mode.read
                matters &= tuple(sorted((one.buffer, other.buffer))) in aliases
            if matters:
                yield a, b


def _diagnostic(code: str, text: str, kernel: Kernel, pair: Pair, conflict: Conflict) -> Diagnostic:
    buffer = pair.before.buffer
    ends = ((pair.source, conflict.source), (pair.sink, conflict.sink))
    if conflict.byte is None:
        one, other = (op_name(op) for op, _ in ends)
        held = " and ".join(dict.fromkeys((buffer.id, pair.after.buffer.id)))
        why = (
            f"{one} and {other} might share bytes of {held}, {_distance_text(pair, conflict)} apart"
        )
        if pair.a.buffer == pair.b.buffer:
            why += (
                "; the exact search ran out of its budget: give more with --budget, or leave the "
                "claim away"
            )
    else:
        one, other = (f"{op_name(op)} at {at_iterations(kernel, at)}" for op, at in ends)
        why = f"{one} and {other} share {element(buffer, conflict.byte)}"
    return Diagnostic(code, text.format(why), _place(pair.sink))


def _distance_text(pair: Pair, conflict: Conflict) -> str:
    return ", ".join(
        f"{d} of {loop}" for loop, d in zip(pair.shared, conflict.distance, strict=True) if d
    )


def _place(op: Op) -> str:
    return f"{op.place.file}:{op.place.line}" if op.place else ""


# -- tensors that may share bytes ------------------------------------------------------------------


def with_aliases(kernel: Kernel, elision: Elision, claims: Iterable[Claim]) -> Elision:
    """The elision with every order between tensors that may share bytes.

    Raises ClaimError for a tensor that is not there, and for two that are disjoint anyway.
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
            got="one tensor"
            if one.id == other.id
            else "tensors that the kernel allocates separately",
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
