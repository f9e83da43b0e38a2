"""What a check finds: a code, a sentence, and the same as data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tokenplan.checker.conflicts import members
from tokenplan.checker.memory import Memory, common
from tokenplan.checker.unrolled import Unrolled

MISSING = "E1"
NOT_PARALLEL = "E2"
TOO_DEEP = "E3"
FALSE = "E4"
DEADLOCK = "E5"
VALUES = "E6"
REDUNDANT = "W5"

MEANINGS = {
    MISSING: "missing order: two instances touch the same bytes and may run in any order",
    NOT_PARALLEL: "a loop that is claimed parallel carries a conflict",
    TOO_DEEP: "a pipeline is deeper than the distance of a conflict",
    FALSE: "the file states something that is not so",
    DEADLOCK: "the plan stops before its end",
    VALUES: "the plan computes other values than the kernel in sequence",
    REDUNDANT: "an edge or wait that can go",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong; `detail` holds its parts for machines."""

    code: str
    text: str
    detail: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.code} {self.text}"


def named(unrolled: Unrolled, instance: int) -> str:
    """An instance as people write it: store[k=3]."""
    at = ", ".join(f"{loop}={n}" for loop, n in unrolled.where(instance).items())
    return unrolled.ops[int(unrolled.op[instance])].id + (f"[{at}]" if at else "")


def missing_orders(
    unrolled: Unrolled, memory: Memory, missing: dict[int, int], who: str
) -> list[Finding]:
    """One finding per pair of operations, with how many of their instances and the first two."""
    ops = unrolled.op.tolist()
    counts: Counter[tuple[int, int]] = Counter()
    first: dict[tuple[int, int], tuple[int, int]] = {}
    for later, bits in sorted(missing.items()):
        for earlier in members(bits):
            pair = ops[earlier], ops[later]
            counts[pair] += 1
            first.setdefault(pair, (earlier, later))
    return [
        missing_order(unrolled, memory, *first[pair], who, count) for pair, count in counts.items()
    ]


def missing_order(
    unrolled: Unrolled, memory: Memory, earlier: int, later: int, who: str, count: int
) -> Finding:
    """E1: `earlier` must be done before `later` starts, and `who` do not say so."""
    kinds = common(memory, earlier, later)
    if not kinds:
        return _missing_wish(unrolled, memory, earlier, later, who, count)
    kind, cells = next(iter(kinds.items()))
    buffer, byte = min((memory.first_byte(cell) for cell in cells), key=lambda found: found[1])
    size = sum(memory.num_bytes(cell) for cell in cells)
    pair = unrolled.ops[int(unrolled.op[earlier])], unrolled.ops[int(unrolled.op[later])]
    names = [named(unrolled, instance) for instance in (earlier, later)]
    more = f"; {count} such pairs of instances" if count > 1 else ""
    text = (
        f"{names[0]} and {names[1]} ({kind}) are not ordered by {who}: both touch {size} bytes of "
        f"{buffer.id} from byte {byte}, element {list(buffer.element(byte))} on"
        f"{_lines(pair[0].location, pair[1].location)}{more}"
    )
    detail = {
        "from": pair[0].id, "to": pair[1].id, "kind": kind, "pairs": count,
        "buffer": buffer.id, "byte": byte, "bytes": size, "element": list(buffer.element(byte)),
        "iterations": [unrolled.where(earlier), unrolled.where(later)],
        "locations": [pair[0].location, pair[1].location],
    }  # fmt: skip
    return Finding(MISSING, text, detail)


def _missing_wish(
    unrolled: Unrolled, memory: Memory, earlier: int, later: int, who: str, count: int
) -> Finding:
    """E1 of two instances that a join names, or that touch buffers which may share bytes."""
    ends = [unrolled.ops[int(unrolled.op[instance])] for instance in (earlier, later)]
    touched = [{access.buffer for access in op.accesses} for op in ends]
    held = next(
        (
            pair for pair in memory.aliases
            if (pair[0] in touched[0] and pair[1] in touched[1])
            or (pair[1] in touched[0] and pair[0] in touched[1])
        ),
        (),
    )  # fmt: skip
    why = (
        f"they touch {' and '.join(held)}, which may share bytes" if held else "a join requires it"
    )
    names = [named(unrolled, instance) for instance in (earlier, later)]
    more = f"; {count} such pairs of instances" if count > 1 else ""
    text = (
        f"{names[0]} and {names[1]} are not ordered by {who}: {why}"
        f"{_lines(ends[0].location, ends[1].location)}{more}"
    )
    detail = {
        "from": ends[0].id, "to": ends[1].id, "may_alias": list(held), "pairs": count,
        "iterations": [unrolled.where(earlier), unrolled.where(later)],
        "locations": [op.location for op in ends],
    }  # fmt: skip
    return Finding(MISSING, text, detail)


def _lines(first: str | None, second: str | None) -> str:
    return f" ({first or 'line unknown'} and {second or 'line unknown'})" if first or second else ""
