"""The whole check of a plan file: edges, claims, statements, and the plan where there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tokenplan.checker.claims import false_claims, joins
from tokenplan.checker.conflicts import conflicts
from tokenplan.checker.errors import PlanFileError
from tokenplan.checker.findings import REDUNDANT, Finding, missing_orders
from tokenplan.checker.labels import false_labels
from tokenplan.checker.memory import Memory, lay_out
from tokenplan.checker.ordering import Waves, unordered, waves
from tokenplan.checker.plan_check import PlanCheck
from tokenplan.checker.records import Edge, PlanFile
from tokenplan.checker.statements import (
    false_implications,
    false_removals,
    false_witnesses,
    strict_edges,
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
    """What was checked, at which sizes, and everything that is wrong."""

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
