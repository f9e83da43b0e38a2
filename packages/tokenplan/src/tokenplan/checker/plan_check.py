"""The whole check of a plan file: edges, claims, statements, and the plan where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from tokenplan.checker.claims import (
    false_claims,
    false_implications,
    false_removals,
    false_witnesses,
    joined,
    joins,
    strict_edges,
)
from tokenplan.checker.conflicts import conflicts
from tokenplan.checker.errors import PlanFileError
from tokenplan.checker.findings import (
    DEADLOCK,
    FALSE,
    REDUNDANT,
    VALUES,
    Finding,
    missing_order,
    missing_orders,
    named,
)
from tokenplan.checker.labels import false_labels
from tokenplan.checker.memory import Memory, lay_out
from tokenplan.checker.ordering import Waves, unordered, waves
from tokenplan.checker.queues import (
    Explored,
    Queues,
    assign,
    clocks,
    explore,
    miscounts,
    needed_places,
    progress,
)
from tokenplan.checker.records import Edge, Plan, PlanFile
from tokenplan.checker.timings import (
    Times,
    at_times,
    differences,
    in_sequence,
    play,
    races,
    random_durations,
    timings_at_once,
)
from tokenplan.checker.unrolled import Unrolled, unroll


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """How much is checked: see `tokenplan check --help`."""

    random: int = 100
    seed: int = 0
    mutate: bool = False
    interleavings: bool = False
    trips: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Report:
    """The checked plan, its sizes, and everything that is wrong."""

    kernel: str
    instances: int = 0
    conflicts: int = 0
    kept: int = 0
    waits: int = 0
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def check_plan(
    file: PlanFile,
    options: CheckOptions | None = None,
    progress: Callable[[str], None] = lambda what: None,
) -> Report:
    """Check every statement of a plan file; `progress` is told what comes next.

    Raises TooBigError where the kernel or its interleavings are too many to go through, and
    PlanFileError for trip counts that the kernel does not have.
    """
    options = options or CheckOptions()
    _check_trips(file, options.trips)
    progress("unrolling")
    unrolled = unroll(file, options.trips)
    memory = lay_out(unrolled)
    needed = conflicts(memory)
    report = Report(file.kernel, unrolled.size, sum(bits.bit_count() for bits in needed))
    if options.trips:
        reduced = ", ".join(f"{loop}={n}" for loop, n in options.trips.items())
        report.notes.append(f"at reduced trip counts only: {reduced}")
    progress("edges")
    _check_edges(unrolled, memory, needed, options, report)
    if file.plan is None:
        report.notes.append("the file has no plan: queues and waits are not checked")
    elif options.trips:
        report.notes.append("the plan is not checked: its counts hold at full trip counts alone")
    else:
        _check_plan(PlanCheck(unrolled, file.plan), options, report, progress)
    return report


def _check_trips(file: PlanFile, trips: Mapping[str, int]) -> None:
    known = file.trips()
    for loop, count in trips.items():
        if loop not in known:
            raise PlanFileError("--trips", f"{loop} is not a loop of {file.kernel}: {list(known)}")
        if not 0 <= count <= known[loop]:
            raise PlanFileError("--trips", f"{loop} has {known[loop]} trips, not {count}")


def _check_edges(
    unrolled: Unrolled, memory: Memory, needed: list[int], options: CheckOptions, report: Report
) -> None:
    edges = unrolled.file.edges
    by_status: dict[str, list[Edge]] = {"kept": [], "implied": [], "removed": []}
    for edge in edges:
        by_status[edge.status].append(edge)
    kept = waves(unrolled, by_status["kept"])
    report.kept = len(by_status["kept"])
    missing = unordered(unrolled, kept, needed)
    found = report.findings
    found += false_labels(unrolled.file)
    found += missing_orders(unrolled, memory, missing, "the kept edges")
    found += false_implications(unrolled, kept, needed, by_status["implied"] + joins(unrolled))
    found += false_removals(unrolled, memory, by_status["removed"])
    found += false_witnesses(unrolled, by_status["kept"] + by_status["implied"])
    found += false_claims(unrolled, needed)
    if options.mutate and not missing:
        _check_necessity(unrolled, needed, kept, report)
        shown = [edge for edge in edges if edge.witness and edge.status != "removed"]
        found += strict_edges(unrolled, memory, shown)


def _check_necessity(unrolled: Unrolled, needed: list[int], kept: Waves, report: Report) -> None:
    """W5 for every edge with a witness whose deletion lets no conflicting pair loose."""
    edges = [wave.edge for found in kept.values() for wave in found if wave.edge.kind != "join"]
    idle = [e for e in edges if not unordered(unrolled, _without(kept, e), needed, True)]
    for edge in idle:
        if edge.witness:
            report.findings.append(
                Finding(REDUNDANT, f"edge {edge} can go: all stays ordered without it",
                        {"edge": edge.index})
            )  # fmt: skip
    report.notes.append(f"{len(edges) - len(idle)} of {len(edges)} kept edges are necessary")
    if careful := sum(edge.witness is None for edge in idle):
        report.notes.append(f"{careful} more are kept without a witness, as a precaution")


def _without(by_sink: Waves, edge: Edge) -> Waves:
    return {sink: [w for w in found if w.edge is not edge] for sink, found in by_sink.items()}


def _check_plan(
    check: PlanCheck, options: CheckOptions, report: Report, progress: Callable[[str], None]
) -> None:
    report.waits = len(check.plan.waits)
    progress("waits")
    check.check_order()
    if options.random:
        progress(f"{options.random} random timings")
        report.notes.append(check.check_random(options.random, options.seed))
    if options.mutate and not check.findings:
        progress("deleting waits")
        necessary = check.check_necessity()
        report.notes.append(f"{necessary} of {report.waits} waits are necessary")
    if options.interleavings:
        progress("interleavings")
        explored = check.check_interleavings()
        report.notes.append(
            f"{explored.ways} interleavings, {explored.states} states explored: "
            f"races {len(explored.races)}, stops {len(explored.stops)}"
        )
    report.findings += check.findings
    report.notes += check.notes


# -- the plan --------------------------------------------------------------------------------------


VALUE_TIMINGS = 3
"""Timings in which values are compared, too; the others compare times."""


@dataclass(slots=True)
class PlanCheck:
    """A plan laid out: its memory with slots, its queues, what must be done before what."""

    unrolled: Unrolled
    plan: Plan
    memory: Memory = field(init=False)
    queues: Queues = field(init=False)
    needed: list[list[int]] = field(init=False)
    order: list[int] = field(init=False)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_live: bool = field(init=False)

    def __post_init__(self) -> None:
        self.memory = lay_out(self.unrolled, self.plan.slots)
        self.queues = assign(self.unrolled, self.plan)
        both = zip(conflicts(self.memory), joined(self.unrolled), strict=True)
        self.needed = needed_places(self.queues, [needed | requested for needed, requested in both])
        reached = progress(self.queues, self.plan)
        self.order, self.is_live = reached.order, not reached.stuck
        for head, wait in reached.stuck:
            name = self.queues.names[int(self.queues.queue[head])]
            why = str(wait) if wait else "an unknown reason"
            self.findings.append(
                Finding(DEADLOCK, f"queue {name} stops at {named(self.unrolled, head)}: {why} "
                        "never holds", {"queue": name, "op": self._op(head)})
            )  # fmt: skip
        for odd in miscounts(self.queues, self.plan):
            where, wait = named(self.unrolled, odd.instance), odd.wait
            text = (
                f"{wait} counts {odd.count} at {where}, but {wait.after} is completion "
                f"{odd.expected} of {wait.queue} there"
            )
            detail = {"wait": wait.index, "count": odd.count, "expected": odd.expected}
            if odd.too_few:
                self.findings.append(Finding(FALSE, text, detail))
            else:
                self.notes.append(f"{text}: it waits for more than it names")

    def _op(self, instance: int) -> str:
        return self.unrolled.ops[int(self.unrolled.op[instance])].id

    def check_order(self) -> None:
        """Every two instances that conflict, or that a join names, are ordered by the waits."""
        if self.is_live:
            missing = dict(self._missing(None))
            found = missing_orders(self.unrolled, self.memory, missing, "the plan's waits")
            self.findings.extend(found)

    def _missing(self, without: int | None) -> Iterator[tuple[int, int]]:
        """Instance -> bitset of earlier ones, per queue the last, that may still run."""
        known = clocks(self.queues, self.plan, self.order, without)
        for later, (row, clock) in enumerate(zip(self.needed, known, strict=True)):
            bits = 0
            for queue, (place, sure) in enumerate(zip(row, clock, strict=True)):
                if place > sure:
                    bits |= 1 << int(self.queues.order[queue][place - 1])
            if bits:
                yield later, bits

    def check_necessity(self) -> int:
        """W5 for every wait whose deletion lets no conflicting pair loose; how many do."""
        necessary = 0
        for wait in self.plan.waits:
            if next(self._missing(wait.index), None):
                necessary += 1
            else:
                self.findings.append(
                    Finding(REDUNDANT, f"{wait} can go: all stays ordered without it",
                            {"wait": wait.index})
                )  # fmt: skip
        return necessary

    def check_random(self, timings: int, seed: int) -> str:
        """No race in any of this many random timings, and in some the values of a sequence."""
        if not self.is_live:
            return "random timings are not played: the plan stops"
        random = np.random.default_rng(seed)
        found: set[tuple[int, int]] = set()
        played = racy = 0
        for portion in timings_at_once(self.queues, timings):
            durations = random_durations(self.queues, portion, random)
            times = play(self.queues, self.plan, self.order, durations)
            raced = races(self.queues, self.needed, times)
            racy += int(np.logical_or.reduce([*raced.values(), np.zeros(portion, bool)]).sum())
            found |= raced.keys()
            if not played:
                self._compare_values(times, random, seed)
            played += portion
        self._report_races(sorted(found), f"in random timings (seed {seed})")
        return f"{played} random timings played (seed {seed}): a race in {racy} of them"

    def _compare_values(self, times: Times, random: np.random.Generator, seed: int) -> None:
        """E6 for the first of a few timings whose reads or results differ from sequential
        execution.
        """
        expected = in_sequence(self.memory)
        for timing in range(min(VALUE_TIMINGS, times.start.shape[1])):
            start, end = times.start[:, timing], times.end[:, timing]
            reads, cells = differences(expected, at_times(self.memory, start, end, random))
            if not reads and not cells:
                continue
            if reads:
                text = f"{named(self.unrolled, reads[0])} reads other values than in sequence"
            else:
                buffer, byte = self.memory.first_byte(cells[0])
                text = f"byte {byte} of {buffer.id} ends with another value than in sequence"
            where = f"{text} in random timing {timing} of seed {seed}"
            self.findings.append(Finding(VALUES, where, {"reads": len(reads), "cells": len(cells)}))
            return

    def _report_races(self, found: Iterable[tuple[int, int]], when: str) -> None:
        """E1 for every pair of operations that the check of the order has not named."""
        known = {(f.detail.get("from"), f.detail.get("to")) for f in self.findings}
        pairs: dict[tuple[str, str], tuple[int, int]] = {}
        for earlier, later in found:
            pairs.setdefault((self._op(earlier), self._op(later)), (earlier, later))
        for names, (earlier, later) in pairs.items():
            if names not in known:
                who = f"the plan's waits {when}"
                found_here = missing_order(self.unrolled, self.memory, earlier, later, who, 1)
                self.findings.append(found_here)

    def check_interleavings(self) -> Explored:
        """No race and no stop in any interleaving; TooBigError where there are too many."""
        explored = explore(self.queues, self.plan, self.needed)
        self._report_races(explored.races, "in some interleaving")
        return explored
