"""Labels of a plan against its orders: kinds, rules, assumptions, counts.

Nothing is unrolled for this; the iterations behind a witness are looked at with the edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tokenplan.checker.findings import FALSE, Finding
from tokenplan.checker.memory import KINDS
from tokenplan.checker.records import Access, Edge, Loop, Op, PlanFile

SHOWS_A_CONFLICT = {"trial", "budget", "join", "may-alias"}
"""Rules that remove no order."""
HAVE_NO_WITNESS = {"budget", "join", "may-alias"}
REMOVES = {"never", "distinct", "commute", "instances", "boxes", "residues"}
"""Rules that find no conflict."""

IN_BOUNDS = "indices that are read on the device stay inside their tensors"
"""The one assumption that no diagnostic repeats: W1 reports those indices."""


def false_labels(file: PlanFile) -> Iterator[Finding]:
    """E4 for everything that does not fit together."""
    ops = file.ops()
    aliases = {frozenset(claim.buffers) for claim in file.claims if claim.what == "may_alias"}
    for edge in file.edges:
        if wrong := _wrong_edge(file, edge, ops[edge.source], ops[edge.sink], aliases):
            yield Finding(FALSE, f"edge {edge}: {wrong}", {"edge": edge.index})
    for text in sorted(_needed_assumptions(file, aliases) - set(file.assumptions)):
        yield Finding(FALSE, f"the plan assumes that {text}, and does not say so", {"text": text})
    for text in sorted(set(file.assumptions) - {IN_BOUNDS} - set(file.diagnostics)):
        yield Finding(FALSE, f"no diagnostic says what is assumed: {text}", {"text": text})
    for wrong in _wrong_counts(file):
        yield Finding(FALSE, f"stats: {wrong}")


# -- edges -----------------------------------------------------------------------------------------


def _wrong_edge(
    file: PlanFile, edge: Edge, source: Op, sink: Op, aliases: set[frozenset[str]]
) -> str:
    """Labels that contradict the edge; empty where all fit."""
    if wrong := _wrong_rule(edge):
        return wrong
    if edge.witness is not None and edge.buffer not in (None, edge.witness.buffer):
        return f"its witness is in {edge.witness.buffer}, not in {edge.buffer}"
    if unsaid := [text for text in edge.assumes if text not in file.assumptions]:
        return f"it assumes what is not among the assumptions: {unsaid[0]}"
    if edge.rule == "may-alias":
        return _wrong_alias(edge, source, sink, aliases)
    if edge.kind != "join" and edge.kind not in _kinds(edge, source, sink):
        return f"no {edge.kind} over {edge.buffer} is possible between its ends"
    return ""


def _wrong_rule(edge: Edge) -> str:
    """A rule that gives no edge of this status, with this witness, of this kind."""
    is_removed, is_shown = edge.status == "removed", edge.witness is not None
    if is_removed and is_shown:
        return "a removed edge has no witness"
    if is_removed and edge.rule in SHOWS_A_CONFLICT:
        return f"the rule {edge.rule} removes no order"
    if not is_removed and edge.rule in REMOVES:
        return f"the rule {edge.rule} finds no conflict"
    if is_shown and edge.rule in HAVE_NO_WITNESS:
        return f"the rule {edge.rule} has no witness"
    if (edge.kind == "join") != (edge.rule == "join"):
        return f"the kind {edge.kind} does not go with the rule {edge.rule}"
    return ""


def _wrong_alias(edge: Edge, source: Op, sink: Op, aliases: set[frozenset[str]]) -> str:
    pairs = {frozenset((a.buffer, b.buffer)) for a in source.accesses for b in sink.accesses}
    if not pairs & aliases:
        return "no two tensors of its ends are allowed to share bytes"
    if edge.buffer is not None:
        return f"it is between two tensors, not over {edge.buffer}"
    said = {_allowed(pair) for pair in pairs & aliases} & set(edge.assumes)
    return "" if said else "it does not say which tensors may share bytes"


def _allowed(pair: frozenset[str]) -> str:
    """In the words of the schema."""
    return f"it is allowed that {' and '.join(sorted(pair))} share bytes"


def _kinds(edge: Edge, source: Op, sink: Op) -> set[str]:
    """Kinds of conflict that the modes of both ends allow."""
    return {
        KINDS.get(a.mode + b.mode, "")
        for a in source.accesses
        for b in sink.accesses
        if a.buffer == b.buffer and edge.buffer in (None, a.buffer)
    }


# -- assumptions -----------------------------------------------------------------------------------


def _needed_assumptions(file: PlanFile, aliases: set[frozenset[str]]) -> set[str]:
    """Conditions under which two buffers, one of which is written, share no byte."""
    accesses = [a for op in file.ops().values() for a in op.accesses if _has_bytes(a)]
    buffers = sorted({access.buffer for access in accesses})
    written = {access.buffer for access in accesses if access.mode != "R"}
    found = {
        _distinct(file, one, other)
        for one, other in combinations(buffers, 2)
        if written & {one, other} and frozenset((one, other)) not in aliases
    }
    return (found - {""}) | set(map(_allowed, aliases))


def _distinct(file: PlanFile, one: str, other: str) -> str:
    """In the words of the schema; one before other."""
    a, b = file.buffers[one], file.buffers[other]
    if a.is_parameter and b.is_parameter:
        return f"parameters {one} and {other} are distinct tensors"
    if a.space == b.space and a.is_memory != b.is_memory:
        return f"tensors in {a.space} without an address are disjoint from those with one"
    return ""


def _has_bytes(access: Access) -> bool:
    return access.width > 0 and 0 not in access.shape


# -- counts ----------------------------------------------------------------------------------------


def _wrong_counts(file: PlanFile) -> Iterator[str]:
    """Counts of the file that differ from its content."""
    stats = file.stats
    for status in ("kept", "implied"):
        listed = sum(edge.status == status for edge in file.edges)
        if stats.counts.get(status, listed) != listed:
            yield f"{stats.counts[status]} {status} edges are counted, but {listed} are listed"
    if "pairs" not in stats.counts:
        return
    for name, expected in {"total_order": _total_order(file), "pairs": _pairs(file)}.items():
        if stats.counts[name] != expected:
            yield f"{name} is {stats.counts[name]}, but the kernel has {expected}"
    yield from _wrong_pairs(file)
    if odd := sorted(stats.rules.keys() & SHOWS_A_CONFLICT):
        yield f"the rule {odd[0]} removes no order"


def _wrong_pairs(file: PlanFile) -> Iterator[str]:
    """The counts of pairs of accesses, against one another and against the edges."""
    stats = file.stats
    removed, *others = (stats.counts[name] for name in ("removed", "untested", "conflicts"))
    if sum(stats.rules.values()) != removed:
        yield f"the rules removed {sum(stats.rules.values())} pairs together, not {removed}"
    if removed + sum(others) != stats.counts["pairs"]:
        yield "removed, untested and conflicts do not make up all pairs"
    needed = sum(edge.status != "removed" and edge.kind != "join" for edge in file.edges)
    if others[1] < needed:
        yield f"{others[1]} conflicts do not make {needed} edges"


def _total_order(file: PlanFile) -> int:
    """Edges if all waited for what stands before it, and each loop for its last iteration."""
    nodes = list(file.nodes())
    ops = sum(isinstance(node, Op) for node in nodes)
    loops = {loop for node in nodes if isinstance(node, Op) for loop in node.loops}
    return max(0, ops - 1) + len(loops)


def _pairs(file: PlanFile) -> int:
    """Of accesses, as they stand, and inside each outermost loop from an iteration to a later."""
    found = before = 0
    for node in file.body:
        inside = 0
        for op in _ops(node):
            count = sum(map(_has_bytes, op.accesses))
            found += before * count
            if isinstance(node, Loop):
                found += (inside + count) * count
            before, inside = before + count, inside + count
    return found


def _ops(node: Op | Loop) -> Iterator[Op]:
    if isinstance(node, Op):
        yield node
        return
    for inner in node.body:
        yield from _ops(inner)
