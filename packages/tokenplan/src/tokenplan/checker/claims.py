"""What the kernel claims of its loops and operations, against what the instances do."""

from __future__ import annotations

from collections.abc import Iterator

from tokenplan.checker.conflicts import members
from tokenplan.checker.findings import NOT_PARALLEL, TOO_DEEP, Finding, named
from tokenplan.checker.ordering import Walk, waves
from tokenplan.checker.records import Claim, Edge, shared
from tokenplan.checker.unrolled import Unrolled, linear


def joins(unrolled: Unrolled) -> list[Edge]:
    """The edges that claims of kind join ask for: in one iteration, or to the next one of the
    innermost loop where the operation that waits stands first."""
    index, found = unrolled.index, []
    for claim in unrolled.file.claims:
        if claim.what == "join":
            source, sink = claim.ops
            depth = len(shared(*(unrolled.ops[index[name]] for name in claim.ops)))
            later = int(index[source] >= index[sink])
            distance = (*(0 for _ in range(depth - later)), *(1 for _ in range(later)))
            found.append(Edge(claim.index, source, sink, distance, "join", "joined", None, None))
    return found


def joined(unrolled: Unrolled) -> list[int]:
    """Per instance the bitset of earlier ones that joins ask it to come after."""
    found, asked = [0] * unrolled.size, waves(unrolled, joins(unrolled))

    def visit(instance: int, before: int) -> bool:
        del before
        for wave in asked.get(int(unrolled.op[instance]), ()):
            found[instance] |= walk.wanted(wave, int(unrolled.number[instance]))
        return True

    walk = Walk(unrolled, {}, asked)
    if asked:
        walk.run(visit)
    return found


def false_claims(unrolled: Unrolled, needed: list[int]) -> Iterator[Finding]:
    """Loops that are claimed parallel or pipelined, and a conflict that crosses iterations."""
    for claim in unrolled.file.claims:
        if claim.loop and (pair := _crossing(unrolled, needed, claim)):
            earlier, later = (named(unrolled, instance) for instance in pair)
            code = NOT_PARALLEL if claim.what == "parallel" else TOO_DEEP
            what = "parallel" if claim.what == "parallel" else f"a pipeline of depth {claim.depth}"
            yield Finding(
                code, f"loop {claim.loop} is not {what}: {earlier} must be done before {later}",
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
