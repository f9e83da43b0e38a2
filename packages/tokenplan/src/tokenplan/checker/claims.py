"""What the kernel claims of its loops and operations, against what the instances do."""

from __future__ import annotations

from collections.abc import Iterator

from tokenplan.checker.conflicts import members
from tokenplan.checker.findings import NOT_PARALLEL, TOO_DEEP, Finding, named
from tokenplan.checker.records import Claim, Edge, shared
from tokenplan.checker.unrolled import Unrolled, linear


def joins(unrolled: Unrolled) -> list[Edge]:
    """The edges that claims of kind join ask for: the nearest earlier iteration of both."""
    ops, found = {op.id: n for n, op in enumerate(unrolled.ops)}, []
    for claim in unrolled.file.claims:
        if claim.what == "join":
            first, second = sorted(claim.ops, key=ops.__getitem__)
            depth = len(shared(unrolled.ops[ops[first]], unrolled.ops[ops[second]]))
            edge = Edge(claim.index, first, second, (0,) * depth, "join", "joined", None, None)
            found.append(edge)
    return found


def false_claims(unrolled: Unrolled, needed: list[int]) -> Iterator[Finding]:
    """Loops that are claimed parallel or pipelined, and a conflict that crosses iterations."""
    for claim in unrolled.file.claims:
        if claim.loop and (pair := _crossing(unrolled, needed, claim)):
            earlier, later = (named(unrolled, instance) for instance in pair)
            code = NOT_PARALLEL if claim.what == "parallel" else TOO_DEEP
            what = "parallel" if claim.what == "parallel" else f"a pipeline of depth {claim.depth}"
            yield Finding(
                code, f"loop {claim.loop} is no {what}: {earlier} must be done before {later}",
                {"claim": claim.index, "loop": claim.loop,
                 "iterations": [unrolled.where(instance) for instance in pair]},
            )  # fmt: skip


def _crossing(unrolled: Unrolled, needed: list[int], claim: Claim) -> tuple[int, int] | None:
    """The first two conflicting instances in iterations of the loop that the claim parts."""
    bits: dict[tuple[int, int], int] = {}
    """Outer iteration and iteration of the loop -> its instances."""
    at: dict[int, tuple[int, int]] = {}
    for number, op in enumerate(unrolled.ops):
        if claim.loop not in op.loops:
            continue
        depth = op.loops.index(claim.loop)
        vectors = unrolled.iterations[number]
        outer = linear(vectors[:, :depth], [unrolled.trips[loop] for loop in op.loops[:depth]])
        for where, n, instance in zip(
            outer.tolist(), vectors[:, depth].tolist(), unrolled.positions[number].tolist(),
            strict=True,
        ):  # fmt: skip
            at[instance] = where, n
            bits[where, n] = bits.get((where, n), 0) | 1 << instance
    for instance, (where, n) in sorted(at.items()):
        nearest = 0 if claim.what == "parallel" else max(0, n - claim.depth + 1)
        for other in range(nearest, n):
            if hit := needed[instance] & bits.get((where, other), 0):
                return members(hit)[0], instance
    return None
