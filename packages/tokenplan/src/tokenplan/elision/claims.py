"""What the user claims of loops, checked; and orders that the user requests."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches

from neuroncore.errors import LaunchError
from tokenplan import rules
from tokenplan.graph.diagnostics import Diagnostic
from tokenplan.graph.token_graph import JOIN, KEPT, Claim, Edge, Join, MayAlias, Parallel, Pipeline
from tokenplan.graph.wording import at_iterations, element, op_name
from tokenplan.kernel.model import Kernel, Mode, Op, commute, shared_loops
from tokenplan.rules import Conflict, Pair
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
    """E2 for a loop whose iterations meet, E3 for one whose iterations meet too soon.

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
    """The two accesses that meet in the nearest iterations of the loop, the first such two."""
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
