"""The streams of a plan as text: what each queue executes, waits for and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from neuroncore.program import Affine, Program
from tokenplan.graph.token_graph import IMPLIED, KEPT, TokenGraph
from tokenplan.kernel.model import Kernel, Node, Op
from tokenplan.neuroncore.machine import machine
from tokenplan.neuroncore.plan import AsyncPlan, Wait
from tokenplan.neuroncore.play import Comparison, compare

INDENT = "  "


def listing(kernel: Kernel, plan: AsyncPlan) -> str:
    """One stream per queue, loops as loops; counts in iterations of these loops from 0 on."""
    lines = [_head(plan)]
    for queue in sorted(set(plan.queues.values())):
        step = machine().step(queue)
        read_by = sorted({plan.queues[w.op] for w in plan.waits if w.queue == queue})
        told = f", read by {', '.join(read_by)}" if read_by else ", not read"
        lines += ["", f"stream {queue}: each completion adds {step} to its counter{told}"]
        lines += _body(kernel.body, plan, queue, INDENT)
    return "\n".join(lines)


def _head(plan: AsyncPlan) -> str:
    slots = ", ".join(f"{name} x{places}" for name, places in plan.slots.items()) or "none"
    ahead = ", ".join(f"{loop} by {n}" for loop, n in plan.prefetch.items() if n) or "none"
    return (
        f"buffers in turn: {slots}\nloads ahead: {ahead}\n"
        f"{len(plan.waits)} waits, none of which follows from the others ({plan.proof})"
    )


def _body(body: Sequence[Node], plan: AsyncPlan, queue: str, indent: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, Op):
            if plan.queues[node.id] == queue:
                yield from _op(node, plan, indent)
            continue
        inner = list(_body(node.body, plan, queue, indent + INDENT))
        if inner:
            yield f"{indent}for {node.id} in range({node.trips}):"
            yield from inner


def _op(op: Op, plan: AsyncPlan, indent: str) -> Iterator[str]:
    for wait in plan.waits:
        if wait.op == op.id:
            yield indent + _wait(op, wait)
    place = f"  # {Path(op.place.file).name}:{op.place.line}" if op.place else ""
    name = op.id if op.id.startswith(op.instruction) else f"{op.instruction} {op.id}"
    yield f"{indent}{name}{place}"


def _wait(op: Op, wait: Wait) -> str:
    loops = op.loops[: len(wait.distance)]
    back = dict(zip(loops, wait.distance, strict=True))
    shift = sum(factor * back[loop] for loop, factor in wait.count.terms)
    number = Affine(wait.count.constant - shift, wait.count.terms)
    shown = f"{wait.unit}*({number})" if wait.unit > 1 else str(number)
    inner = [loop for loop in op.loops if loop not in dict(wait.count.terms)]
    once = f", once before {', '.join(inner)}" if inner else ""
    far = _far(loops, wait.distance)
    return f"wait {wait.queue} >= {shown}  # {wait.after}{far}: {', '.join(wait.why)}{once}"


def _far(loops: Sequence[str], distance: Sequence[int]) -> str:
    """Of how many iterations before, and so from which on."""
    steps = [f"{n} back in {loop}" for loop, n in zip(loops, distance, strict=True) if n]
    return f" {', '.join(steps)}" if steps else ""


def suggestions(graph: TokenGraph, plan: AsyncPlan) -> list[tuple[str, str]]:
    """Pairs (after, before) that NKI's scheduler could be told to keep the plan's streams.

    Neighbours of one queue in one block whose order no data requires; the scheduler may swap them,
    the plan does not. It accepts additional orders only, and finds the orders that data requires by
    itself.
    """
    known = {
        (e.source, e.sink)
        for e in graph.edges
        if e.status in (KEPT, IMPLIED) and not any(e.distance)
    }
    return [
        (after, before)
        for before, after in _neighbours(graph.kernel.body, plan)
        if (before, after) not in known
    ]


def _neighbours(body: Sequence[Node], plan: AsyncPlan) -> Iterator[tuple[str, str]]:
    last: dict[str, str] = {}
    for node in body:
        if isinstance(node, Op):
            queue = plan.queues[node.id]
            if queue in last:
                yield last[queue], node.id
            last[queue] = node.id
        else:
            yield from _neighbours(node.body, plan)


def schedule_text(graph: TokenGraph, plan: AsyncPlan) -> str:
    """The suggestions as a call to paste, and which instructions would need a name first."""
    pairs = suggestions(graph, plan)
    if not pairs:
        return "nothing to suggest: data orders the instructions of every queue"
    unnamed = {op.id for op in graph.kernel.ops() if _is_unnamed(op)}
    needed = [name for name in dict.fromkeys(n for pair in pairs for n in pair) if name in unnamed]
    lines = [f'    ("{after}", "{before}"),' for after, before in pairs]
    hint = [f"# give these a name= first: {', '.join(needed)}"] if needed else []
    return "\n".join(["kernel.with_schedule([  # (after, before)", *lines, "])", *hint])


def _is_unnamed(op: Op) -> bool:
    return op.id == op.instruction or op.id.startswith(f"{op.instruction}.")


# -- what a schedule gains -------------------------------------------------------------------------


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
