"""Findings of a check: a code, a sentence, and the same as data."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tokenplan.checker.conflicts import members
from tokenplan.checker.memory import Memory, common
from tokenplan.checker.records import Op
from tokenplan.checker.unrolled import Unrolled

MISSING = "E1"
NOT_PARALLEL = "E2"
TOO_DEEP = "E3"
FALSE = "E4"
DEADLOCK = "E5"
VALUES = "E6"
REDUNDANT = "W5"

MEANINGS = {
    MISSING: "missing order: two instances access the same bytes and may run in any order",
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
    source, sink = (unrolled.ops[int(unrolled.op[instance])] for instance in (earlier, later))
    kinds = common(memory, earlier, later)
    kind, why, about = (
        _conflict(memory, kinds, count) if kinds else _request(memory, source, sink, count)
    )
    one, other = named(unrolled, earlier), named(unrolled, later)
    more = f"; {count} such pairs of instances" if count > 1 else ""
    lines = _lines(source.location, sink.location)
    detail = {
        "from": source.id, "to": sink.id, **about,
        "iterations": [unrolled.where(earlier), unrolled.where(later)],
        "locations": [source.location, sink.location],
    }  # fmt: skip
    return Finding(
        MISSING, f"{one} and {other}{kind} are not ordered by {who}: {why}{lines}{more}", detail
    )


def _conflict(
    memory: Memory, kinds: dict[str, list[int]], count: int
) -> tuple[str, str, dict[str, Any]]:
    """The kind of a conflict, the bytes that both access in words, and as data."""
    kind, cells = next(iter(kinds.items()))
    buffer, byte = min((memory.first_byte(cell) for cell in cells), key=lambda found: found[1])
    size, element = sum(map(memory.num_bytes, cells)), list(buffer.element(byte))
    why = f"both access {size} bytes of {buffer.id} from byte {byte}, element {element} on"
    about = {
        "kind": kind, "pairs": count,
        "buffer": buffer.id, "byte": byte, "bytes": size, "element": element,
    }  # fmt: skip
    return f" ({kind})", why, about


def _request(memory: Memory, source: Op, sink: Op, count: int) -> tuple[str, str, dict[str, Any]]:
    """The same of two operations that a join names, or whose buffers may share bytes."""
    pairs = {(a.buffer, b.buffer) for a in source.accesses for b in sink.accesses}
    held = next((pair for pair in memory.aliases if pairs & {pair, pair[::-1]}), ())
    why = f"they access {' and '.join(held)}, which may share bytes" if held else None
    return "", why or "a join requires it", {"may_alias": list(held), "pairs": count}


def _lines(first: str | None, second: str | None) -> str:
    return f" ({first or 'line unknown'} and {second or 'line unknown'})" if first or second else ""
