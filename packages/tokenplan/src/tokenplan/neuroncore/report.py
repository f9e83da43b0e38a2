"""What a schedule gains, as text: times beside other orders, waits, what is waited for."""

from __future__ import annotations

from collections.abc import Iterator

from neuroncore.program import Program
from tokenplan.graph.token_graph import TokenGraph
from tokenplan.neuroncore.listing import listing, schedule_text
from tokenplan.neuroncore.plan import AsyncPlan
from tokenplan.neuroncore.play import Comparison, compare


def scheduled(graph: TokenGraph, plan: AsyncPlan, program: Program) -> str:
    """The streams of a plan, how long it takes on the timeline, and what NKI could be told."""
    lines = [listing(graph.kernel, plan), "", *_times(compare(graph, plan, program))]
    return "\n".join([*lines, "", schedule_text(graph, plan)]) + "\n"


def _times(found: Comparison) -> Iterator[str]:
    planned = found.planned
    lane, busy = planned.busiest
    yield (
        f"{_us(planned.makespan_ns)}, {planned.ratio:.2f} times what {lane} alone takes "
        f"({_us(busy)}); DMA engines are busy {planned.bandwidth_share:.0%} of the time"
    )
    yield (
        f"in one stream {_us(found.serial_ns)} "
        f"({found.serial_ns / max(planned.makespan_ns, 1e-9):.1f} times as long); "
        f"if every conflict waits {_us(found.all_pairs.makespan_ns)}"
    )
    yield (
        f"{len(planned.plan.waits)} waits, {found.waits} times in a run, instead of "
        f"{len(found.all_pairs.plan.waits)}, {found.all_waits} times"
    )
    for engine, causes in planned.exposed().items():
        told = ", ".join(f"{cause} {_us(ns)}" for cause, ns in causes.items())
        yield f"{engine} stands still: {told}"


def _us(nanoseconds: float) -> str:
    return f"{nanoseconds / 1e3:.2f} µs"
