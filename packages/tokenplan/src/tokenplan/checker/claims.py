"""Claims of the kernel about loops and operations, against the instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tokenplan.checker.conflicts import members
from tokenplan.checker.findings import FALSE, NOT_PARALLEL, REDUNDANT, TOO_DEEP, Finding, named
from tokenplan.checker.memory import KINDS, Memory, fight_over
from tokenplan.checker.ordering import Walk, Waves, waves
from tokenplan.checker.records import Claim, Edge, Witness, shared
from tokenplan.checker.unrolled import Unrolled, linear


def joins(unrolled: Unrolled) -> list[Edge]:
    """The edges that claims of kind join require: in one iteration, or to the next one of the
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
    found, requested = [0] * unrolled.size, waves(unrolled, joins(unrolled))

    def visit(instance: int, before: int) -> bool:
        del before
        for wave in requested.get(int(unrolled.op[instance]), ()):
            found[instance] |= walk.required(wave, int(unrolled.number[instance]))
        return True

    walk = Walk(unrolled, {}, requested)
    if requested:
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


# -- statements about edges ------------------------------------------------------------------------


def false_implications(
    unrolled: Unrolled, kept: Waves, needed: list[int], edges: list[Edge]
) -> list[Finding]:
    """Edges said to be implied, or required by a join, that the kept ones do not give.

    An edge with a witness orders the instances that conflict (`needed`), others for all.
    """
    requested = waves(unrolled, edges)
    wrong: dict[int, tuple[Edge, int, int]] = {}

    def visit(instance: int, before: int) -> bool:
        number = int(unrolled.number[instance])
        for wave in requested.get(int(unrolled.op[instance]), ()):
            gap = walk.required(wave, number) & ~before
            if wave.edge.witness is not None:
                gap &= needed[instance]
            if gap:
                wrong.setdefault(wave.edge.index, (wave.edge, members(gap)[-1], instance))
        return True

    walk = Walk(unrolled, kept, requested)
    walk.run(visit)
    return [
        Finding(
            FALSE,
            f"{edge.status} edge {edge} does not follow from the kept ones: "
            f"{named(unrolled, earlier)} and {named(unrolled, later)} are not ordered",
            {"edge": edge.index, "from": edge.source, "to": edge.sink},
        )
        for edge, earlier, later in wrong.values()
    ]


def false_removals(unrolled: Unrolled, memory: Memory, edges: list[Edge]) -> list[Finding]:
    """Removed edges whose operations do conflict, at that distance or a greater one: over the
    buffer and in the way that the edge names.
    """
    index = unrolled.index
    found = []
    for edge in edges:
        ends = (index[edge.source], index[edge.sink])
        for later, bits in _conflicts_of(unrolled, memory, edge, *ends):
            at = unrolled.where(later)
            distances = (
                (n, _distance(unrolled, edge, unrolled.where(n), at)) for n in members(bits)
            )
            hit = [n for n, distance in distances if distance >= edge.distance]
            if hit:
                found.append(_removed(unrolled, edge, hit[0], later))
                break
    return found


def strict_edges(unrolled: Unrolled, memory: Memory, edges: list[Edge]) -> Iterator[Finding]:
    """W5 for edges that reach nearer than the nearest conflict of their kind and buffer."""
    index = unrolled.index
    for edge in edges:
        nearest: tuple[int, ...] | None = None
        ends = (index[edge.source], index[edge.sink])
        for later, bits in _conflicts_of(unrolled, memory, edge, *ends):
            last = unrolled.where(bits.bit_length() - 1)
            distance = _distance(unrolled, edge, last, unrolled.where(later))
            nearest = distance if nearest is None else min(nearest, distance)
            if nearest <= edge.distance:
                break
        else:
            why = f"the nearest is at {list(nearest)}" if nearest else "there is none"
            yield Finding(
                REDUNDANT, f"edge {edge} is stricter than any {edge.kind} conflict requires: {why}",
                {"edge": edge.index, "nearest": nearest and list(nearest)},
            )  # fmt: skip


def _accesses(memory: Memory, instance: int, buffer: str | None) -> list[tuple[str, int]]:
    """(mode, cell) of an instance's accesses to a buffer; None: to all."""
    return [
        (mode, cell)
        for mode, cells in memory.accesses[instance]
        for cell in cells
        if buffer in (None, memory.owners[cell][0].id)
    ]


def _conflicts_of(
    unrolled: Unrolled, memory: Memory, edge: Edge, source: int, sink: int
) -> Iterator[tuple[int, int]]:
    """Instances of the sink, each with the bitset of the source's earlier ones that it conflicts
    with in the way and over the buffer that the edge names.
    """
    modes = [tuple(pair) for pair, kind in KINDS.items() if kind == edge.kind]
    seen: dict[tuple[str, int], int] = {}
    ends = set(unrolled.positions[source].tolist()), set(unrolled.positions[sink].tolist())
    for instance in sorted(ends[0] | ends[1]):
        accesses = _accesses(memory, instance, edge.buffer)
        if instance in ends[1]:
            bits = 0
            for mode, cell in accesses:
                for first, second in modes:
                    if second == mode:
                        bits |= seen.get((first, cell), 0)
            if bits:
                yield instance, bits
        if instance in ends[0]:
            for access in accesses:
                seen[access] = seen.get(access, 0) | 1 << instance


def _distance(
    unrolled: Unrolled, edge: Edge, source: Mapping[str, int], sink: Mapping[str, int]
) -> tuple[int, ...]:
    """The distance between two instances of the edge's operations."""
    loops = unrolled.ops[unrolled.index[edge.source]].loops[: len(edge.distance)]
    return tuple(sink[loop] - source[loop] for loop in loops)


def _removed(unrolled: Unrolled, edge: Edge, earlier: int, later: int) -> Finding:
    return Finding(
        FALSE,
        f"removed edge {edge} ({edge.kind}) is needed: {named(unrolled, earlier)} and "
        f"{named(unrolled, later)} conflict",
        {"edge": edge.index, "from": edge.source, "to": edge.sink},
    )


def false_witnesses(unrolled: Unrolled, edges: list[Edge]) -> Iterator[Finding]:
    """Witnesses that are none: an iteration too near, a byte that the two do not fight over."""
    index = unrolled.index
    for edge in edges:
        witness = edge.witness
        if witness is None or edge.kind == "join":
            continue
        ends = [
            _instance(unrolled, index[op], at)
            for op, at in ((edge.source, witness.source), (edge.sink, witness.sink))
        ]
        if None in ends:
            continue  # beyond the reduced trip counts
        earlier, later = (end for end in ends if end is not None)
        if wrong := _wrong_witness(unrolled, edge, witness, earlier, later):
            yield Finding(
                FALSE, f"the witness of edge {edge}: {wrong}",
                {"edge": edge.index, "from": edge.source, "to": edge.sink},
            )  # fmt: skip


def _wrong_witness(
    unrolled: Unrolled, edge: Edge, witness: Witness, earlier: int, later: int
) -> str:
    distance = _distance(unrolled, edge, witness.source, witness.sink)
    if earlier >= later:
        return f"{named(unrolled, earlier)} does not come before {named(unrolled, later)}"
    if distance < edge.distance:
        return f"it is {list(distance)} iterations apart"
    buffer = unrolled.file.buffers[witness.buffer]
    if witness.element != buffer.element(witness.byte):
        held = list(buffer.element(witness.byte))
        return (
            f"byte {witness.byte} of {buffer.id} is in element {held}, not {list(witness.element)}"
        )
    kinds = fight_over(unrolled, witness.buffer, witness.byte, earlier, later)
    if edge.kind not in kinds:
        both = f"{named(unrolled, earlier)} and {named(unrolled, later)}"
        how = f"but {' and '.join(sorted(kinds))}" if kinds else "and do not conflict there"
        return (
            f"{both} are not a {edge.kind} conflict over byte {witness.byte} of {buffer.id}, {how}"
        )
    return ""


def _instance(unrolled: Unrolled, op: int, at: Mapping[str, int]) -> int | None:
    loops = unrolled.ops[op].loops
    if any(at[loop] >= unrolled.trips[loop] for loop in loops):
        return None
    number = 0
    for loop in loops:
        number = number * unrolled.trips[loop] + at[loop]
    return int(unrolled.positions[op][number])
