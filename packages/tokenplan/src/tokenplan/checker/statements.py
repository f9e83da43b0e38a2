"""What the file says of its edges and loops, against what the instances do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tokenplan.checker.conflicts import bitset, members
from tokenplan.checker.findings import FALSE, Finding, named
from tokenplan.checker.memory import Memory, common, fight_over
from tokenplan.checker.ordering import Walk, Waves, waves
from tokenplan.checker.records import Edge, Witness
from tokenplan.checker.unrolled import Unrolled


def false_implications(unrolled: Unrolled, kept: Waves, edges: list[Edge]) -> list[Finding]:
    """Edges said to be implied, or asked for by a join, that the kept ones do not give."""
    asked, wrong = waves(unrolled, edges), {}

    def visit(instance: int, before: int) -> bool:
        number = int(unrolled.number[instance])
        for wave in asked.get(int(unrolled.op[instance]), ()):
            if gap := walk.wanted(wave, number) & ~before:
                wrong.setdefault(wave.edge, (members(gap)[-1], instance))
        return True

    walk = Walk(unrolled, kept, asked)
    walk.run(visit)
    return [
        Finding(
            FALSE,
            f"{edge.status} edge {edge} does not follow from the kept ones: "
            f"{named(unrolled, earlier)} and {named(unrolled, later)} are not ordered",
            {"edge": edge.index, "from": edge.source, "to": edge.sink},
        )
        for edge, (earlier, later) in wrong.items()
    ]


def false_removals(
    unrolled: Unrolled, memory: Memory, needed: list[int], edges: list[Edge]
) -> list[Finding]:
    """Removed edges whose operations do conflict: in one iteration of their shared loops where
    the distance is zero, else in any two iterations that far apart or farther.
    """
    numbers = unrolled.number.tolist()
    index = {op.id: n for n, op in enumerate(unrolled.ops)}
    masks = [bitset(at, unrolled.size) for at in unrolled.positions]
    found = []
    for edge in edges:
        source, sink = index[edge.source], index[edge.sink]
        depth = len(edge.distance)
        ends = [unrolled.iterations[op][:, :depth].tolist() for op in (source, sink)]
        for later in map(int, unrolled.positions[sink]):
            for earlier in members(needed[later] & masks[source]):
                here, there = ends[0][numbers[earlier]], ends[1][numbers[later]]
                apart = tuple(b - a for a, b in zip(here, there, strict=True))
                far = apart >= edge.distance if any(edge.distance) else not any(apart)
                if far and edge.kind in {*common(memory, earlier, later), "join"}:
                    found.append(_removed(unrolled, edge, earlier, later))
                    break
            else:
                continue
            break
    return found


def _removed(unrolled: Unrolled, edge: Edge, earlier: int, later: int) -> Finding:
    return Finding(
        FALSE,
        f"removed edge {edge} ({edge.kind}) is needed: {named(unrolled, earlier)} and "
        f"{named(unrolled, later)} conflict",
        {"edge": edge.index, "from": edge.source, "to": edge.sink},
    )


def false_witnesses(unrolled: Unrolled, edges: list[Edge]) -> Iterator[Finding]:
    """Witnesses that are none: an iteration too near, a byte that the two do not fight over."""
    index = {op.id: n for n, op in enumerate(unrolled.ops)}
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
    loops = list(witness.source)[: len(edge.distance)]
    apart = tuple(witness.sink[loop] - witness.source[loop] for loop in loops)
    if earlier >= later:
        return f"{named(unrolled, earlier)} does not come before {named(unrolled, later)}"
    if apart < edge.distance:
        return f"it is {list(apart)} iterations apart"
    if not fight_over(unrolled, witness.buffer, witness.byte, earlier, later):
        both = f"{named(unrolled, earlier)} and {named(unrolled, later)}"
        return f"{both} do not conflict over byte {witness.byte} of {witness.buffer}"
    return ""


def _instance(unrolled: Unrolled, op: int, at: Mapping[str, int]) -> int | None:
    loops = unrolled.ops[op].loops
    if any(at[loop] >= unrolled.trips[loop] for loop in loops):
        return None
    number = 0
    for loop in loops:
        number = number * unrolled.trips[loop] + at[loop]
    return int(unrolled.positions[op][number])
