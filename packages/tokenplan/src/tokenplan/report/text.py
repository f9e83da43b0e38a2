"""The report in words: which two accesses, which element, which iterations."""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from typing import Any

from tokenplan.graph.diagnostics import folded
from tokenplan.graph.token_graph import ALIAS, IMPLIED, JOIN, KEPT, REMOVED, Edge, TokenGraph
from tokenplan.graph.wording import (
    at_iterations,
    distance_text,
    element,
    line_of,
    op_name,
    part,
    plural,
)
from tokenplan.kernel.model import Mode, Op, shared_loops
from tokenplan.rules import says

_VERBS = {Mode.read: "reads", Mode.write: "writes", Mode.accumulate: "adds to"}
_KINDS = {
    "RAW": (Mode.write, Mode.read),
    "WAR": (Mode.read, Mode.write),
    "WAW": (Mode.write, Mode.write),
}


def explained(graph: TokenGraph, verbose: bool = False) -> str:
    """The whole report; `verbose`: with every order that was removed or is implied."""
    return "\n".join(_Report(graph, verbose).lines()) + "\n"


def orders(graph: TokenGraph) -> dict[str, Any]:
    """The contents of a page: the report as text, every order as a row, pairs by rule."""
    report = _Report(graph, verbose=True)
    rules = graph.counts.rules if graph.counts else {}
    return {
        "text": explained(graph, verbose=True),
        "rows": [report.row(edge) for edge in graph.edges],
        "rules": [(rule, says(rule), count) for rule, count in rules.items()],
    }


class _Report:
    def __init__(self, graph: TokenGraph, verbose: bool) -> None:
        self.graph, self.kernel, self.verbose = graph, graph.kernel, verbose
        self.ops = {op.id: op for op in graph.kernel.ops()}

    def lines(self) -> Iterator[str]:
        yield from self.head()
        yield from self.needed()
        yield from self.implied()
        yield from self.removed()
        yield from self.remarks()
        yield from self.account()

    def head(self) -> Iterator[str]:
        """The kernel, its operations and loops."""
        kernel, loops = self.kernel, self.kernel.loops().values()
        yield (
            f"{kernel.name} on {kernel.target}: {plural(len(self.ops), 'operation')}, "
            f"{plural(len(loops), 'loop')}"
        )
        width = max((len(name) for name in self.ops), default=0)
        for op in self.ops.values():
            yield f"  {op.id:{width}}  {_source(op)}".rstrip()
            if "view" in (details := dict(op.details)):
                yield f"  {'':{width}}  {details['view']}; TMA: {details['TMA']}"
        for loop in loops:
            last = loop.start + loop.step * (loop.trips - 1)
            values = f"{loop.variable} from {loop.start} to {last} by {loop.step}"
            yield f"  loop {loop.id}: {plural(loop.trips, 'iteration')}" + (
                f", {values}" if loop.trips else ""
            )

    def needed(self) -> Iterator[str]:
        """Every kept edge with its witness."""
        kept = self.graph.with_status(KEPT)
        yield ""
        yield f"{plural(len(kept), 'order')} to keep:"
        for edge in kept:
            yield f"  {self._order(edge)}"
            yield from (f"      {line}" for line in self._why(edge))

    def implied(self) -> Iterator[str]:
        """Edges that follow from others."""
        implied = self.graph.with_status(IMPLIED)
        if not implied:
            return
        yield ""
        yield f"{plural(len(implied), 'order')} needed, too, but implied by those" + (
            ":" if self.verbose else " (--verbose shows them)"
        )
        if self.verbose:
            for edge in implied:
                yield f"  {self._order(edge)}"
                yield from (f"      {line}" for line in self._why(edge))

    def removed(self) -> Iterator[str]:
        """Pairs that need no order, by rule."""
        counts = self.graph.counts
        if counts is None:
            return
        listed: dict[str, list[Edge]] = {}
        for edge in self.graph.with_status(REMOVED):
            listed.setdefault(edge.rule, []).append(edge)
        yield ""
        yield f"{plural(counts.removed, 'pair')} of accesses that need no order:"
        for rule, count in sorted(counts.rules.items(), key=lambda item: (-item[1], item[0])):
            yield f"  {plural(count, 'pair')}: {says(rule)} [{rule}]"
            edges = listed.get(rule, [])
            for edge in edges if self.verbose else edges[:1]:
                yield f"      {'' if self.verbose else 'such as '}{self._distance_text(edge)}"

    def remarks(self) -> Iterator[str]:
        """Diagnostics and assumptions."""
        if self.graph.diagnostics:
            yield ""
            shown = self.graph.diagnostics
            yield from map(str, shown if self.verbose else folded(shown))
            yield f"(tokenplan explain-code {self.graph.diagnostics[0].code}: what to do about it)"

    def account(self) -> Iterator[str]:
        """All counts, in one place."""
        counts = self.graph.counts
        if counts is None:
            return
        kept, implied = (len(self.graph.with_status(status)) for status in (KEPT, IMPLIED))
        yield ""
        yield (
            f"{plural(counts.pairs, 'pair')} of accesses: {counts.removed:,} need no order, "
            f"{counts.conflicts:,} conflict"
            f"{_untested(counts.untested)}"
        )
        yield (
            f"{plural(counts.total_order, 'edge')} if everything waited for what stands before it; "
            f"{kept} to keep, {implied} implied"
        )

    # -- one order --------------------------------------------------------------------------------

    def row(self, edge: Edge) -> dict[str, Any]:
        """An order for a page: its ends with their lines, when it holds, why."""
        ends = self.ops[edge.source], self.ops[edge.sink]
        is_removed = edge.status == REMOVED
        why = [self._distance_text(edge), says(edge.rule)] if is_removed else self._why(edge)
        return {
            "status": edge.status, "rule": edge.rule, "ends": [op.id for op in ends],
            "at": [(op.place.file, op.place.line) if op.place else None for op in ends],
            "when": distance_text(self._variables(*ends), edge.distance), "why": why,
        }  # fmt: skip

    def _order(self, edge: Edge) -> str:
        source, sink = self.ops[edge.source], self.ops[edge.sink]
        when = distance_text(self._variables(source, sink), edge.distance)
        return f"{source.id} -> {sink.id}  {when}"

    def _variables(self, source: Op, sink: Op) -> list[str]:
        loops = self.kernel.loops()
        return [loops[name].variable for name in shared_loops(source, sink)]

    def _why(self, edge: Edge) -> list[str]:
        """The access of each end, a line each."""
        source, sink = self.ops[edge.source], self.ops[edge.sink]
        if edge.kind == JOIN:
            return ["you ask for it (join)"]
        if edge.rule == ALIAS:
            return [f"{', '.join(edge.assumes)} [{edge.kind}, {ALIAS}]"]
        first, second = _verbs(edge, source, sink)
        witness = edge.witness
        if witness is None:
            return [
                f"{op_name(source)} {first} {edge.buffer}",
                f"{op_name(sink)} {second} it, and nothing proves them disjoint [{edge.rule}]",
            ]
        what = element(self.kernel.buffers[edge.buffer], witness.byte)
        before = at_iterations(self.kernel, witness.source)
        after = at_iterations(self.kernel, witness.sink)
        first = f"perhaps {first}" if self._opaque(edge, source) else first
        second = f"perhaps {second}" if self._opaque(edge, sink) else second
        return [
            f"{op_name(source)} {first} {what} at {before}",
            f"{op_name(sink)} {second} it at {after} [{edge.kind}]",
        ]

    def _opaque(self, edge: Edge, op: Op) -> bool:
        return any(access.opaque and access.buffer == edge.buffer for access in op.accesses)

    def _distance_text(self, edge: Edge) -> str:
        source, sink = self.ops[edge.source], self.ops[edge.sink]
        first, second = _verbs(edge, source, sink)
        before = f"{op_name(source)} {first} {self._part(edge, source, first)}"
        if source is sink and first == second:
            return f"{before}, iteration after iteration"
        after = f"{op_name(sink)} {second} {self._part(edge, sink, second)}"
        return f"{before}, {after}{' later on' if any(edge.distance) else ''}"

    def _part(self, edge: Edge, op: Op, verb: str) -> str:
        """The part of the buffer that the operation accesses."""
        for access in op.accesses:
            if access.buffer == edge.buffer and _VERBS[access.mode] == verb:
                return part(self.kernel, access)
        return edge.buffer


def _verbs(edge: Edge, source: Op, sink: Op) -> tuple[str, str]:
    """The accesses of both ends to the buffer, as verbs."""
    modes = _KINDS.get(edge.kind)
    if modes is None:
        a = {x.mode for x in source.accesses if x.buffer == edge.buffer}
        b = {x.mode for x in sink.accesses if x.buffer == edge.buffer}
        first = Mode.accumulate if Mode.accumulate in a else min(a)
        other = b - {Mode.accumulate} if first is Mode.accumulate else {Mode.accumulate}
        modes = first, min(other or b)
    return _VERBS[modes[0]], _VERBS[modes[1]]


def _untested(count: int) -> str:
    return f", {count:,} follow from others and were not looked at" if count else ""


def _source(op: Op) -> str:
    """The line of source, with its place."""
    if op.place is None:
        return f"{op.instruction} on {op.engine}"
    text = linecache.getline(op.place.file, op.place.line).strip()
    return f"{line_of(op)}: {text or op.instruction}"
