"""Token graphs and plans of kernels: what they keep, what they wait for, how long everything takes.

    python benchmarks/token_plans.py [NAME …] [--write docs/tokenplan-neuroncore.md]
    python benchmarks/token_plans.py --straight [NAME …]

The kernels of examples/tokenplan on their first case, and the matrix product at sizes that are
worth a pipeline. Milliseconds are CPU time, the least of five runs: "check" that the program breaks
no rule, "effects" until the accesses are known, "elision" with every proof and witness, "reduction"
to the minimal graph, "plan" the search for slots, queues and waits (it plays about ten of them),
"emission" of the plan file. Waits are the waits of the plan and, behind "of", the waits if every
conflict between queues waited; "in a run" counts the instances that wait for something new.
Microseconds are the timeline's without the launch; "x busiest" is the plan's time over its busiest
engine's own.

`--straight` prints seconds for programs of 10,000 instructions without a loop, of one run each;
"analysis" is effects, elision and reduction together.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from packages.tokenplan.tests.neuroncore.random_times import (
    durations,
    instances,
    races_without,
    violations,
)
from straight_programs import INSTRUCTIONS, straight_programs

import nki_runtime
from neuroncore.errors import KernelError
from neuroncore.program import Program
from nki_migrate.verify.cases import read_cases
from tokenplan import TokenGraph, analyse
from tokenplan.neuroncore import AsyncPlan, Comparison, compare, schedule
from tokenplan.report import plan_file

FOLDER = Path(__file__).parents[1] / "examples" / "tokenplan"
TIMINGS, SEED, RUNS = 10_000, 6, 5
MARK, END = (
    "<!-- table: python benchmarks/token_plans.py --write docs/tokenplan-neuroncore.md -->",
    "<!-- end -->",
)
STEPS = "check", "effects", "elision", "reduction", "plan", "emission"
PRODUCTS = {"gemm 1024³": 1024, "gemm 2048³": 2048, "gemm 4096³": 4096}


@dataclass(frozen=True)
class Measured:
    """Everything that the tables show of one kernel."""

    name: str
    graph: TokenGraph
    plan: AsyncPlan
    found: Comparison
    ms: dict[str, float]
    races: int
    necessary: int
    size: int


def kernels() -> dict[str, Callable[[], Program]]:
    """Name → what makes the program."""
    first: dict[str, Callable[[], Program]] = {}
    for case in read_cases(FOLDER / "cases.toml"):
        given = {
            a.name: (tuple(a.shape or ()), a.dtype) if a.is_array else a.value for a in case.args
        }
        first.setdefault(case.path.stem, lambda c=case, g=given: _recorded(c.path, c.kernel, g))
    for name, size in PRODUCTS.items():
        given = {"lhs_t": ((size, size), "bfloat16"), "rhs": ((size, size), "bfloat16")}
        first[name] = lambda g=given: _recorded(FOLDER / "gemm.py", "gemm_kernel", g)
    return first


def _recorded(file: Path, kernel: str, given: dict) -> Program:
    with nki_runtime.use("beta2", nki="0.6"):
        spec = importlib.util.spec_from_file_location(f"tokenplan_{file.stem}", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return nki_runtime.program_of(getattr(module, kernel), **given)


def measure(name: str, program: Program) -> Measured:
    """Analyse, plan, play and disturb one kernel."""
    graph, plan, ms = _timed(program)
    for _ in range(RUNS - 1):
        _, _, again = _timed(program)
        ms = {step: min(ms[step], again[step]) for step in ms}
    found = compare(graph, plan, program)
    run, takes = instances(graph, plan), durations(graph, found.planned)
    races = violations(run, takes, TIMINGS, SEED)
    necessary = sum(races_without(graph, plan, takes))
    return Measured(name, graph, plan, found, ms, races, necessary, len(run.queue))


def _timed(program: Program) -> tuple[TokenGraph, AsyncPlan, dict[str, float]]:
    """Graph and plan, and the milliseconds of CPU time that each step took."""
    graph = analyse(program)
    began = time.process_time()
    plan = schedule(graph, program)
    planned = time.process_time()
    plan_file.write(graph, plan.as_json())
    written = time.process_time()
    seconds = {**graph.seconds, "plan": planned - began, "emission": written - planned}
    return graph, plan, {step: took * 1e3 for step, took in seconds.items()}


HEADS = (
    ("kernel", "operations", "pairs", "removed", "kept", *(f"{step} ms" for step in STEPS)),
    ("kernel", "instances", "waits", "of", "necessary", "in a run", "of", "plan µs", "x busiest",
     "one stream µs", "all wait µs", "DMA busy", f"races in {TIMINGS:,} timings"),
    ("kernel", "buffers in turn", "who stands still for what"),
)  # fmt: skip


def rows(found: Measured) -> tuple[Sequence[object], ...]:
    """One row for each table."""
    counts, both, planned = found.graph.counts, found.found, found.found.planned
    assert counts is not None
    times = [f"{found.ms[step]:.2f}" for step in STEPS]
    kept = len(found.graph.with_status("kept"))
    slots = ", ".join(f"{name} {n}" for name, n in found.plan.slots.items() if n > 1) or "–"
    still = "; ".join(
        f"{engine}: " + ", ".join(f"{cause} {ns / 1e3:.1f} µs" for cause, ns in causes.items())
        for engine, causes in planned.exposed().items()
    )
    return (
        (found.name, sum(1 for _ in found.graph.kernel.ops()), counts.pairs, counts.removed, kept,
         *times),
        (found.name, f"{found.size:,}", len(found.plan.waits), len(both.all_pairs.plan.waits),
         found.necessary, f"{both.waits:,}", f"{both.all_waits:,}",
         f"{planned.makespan_ns / 1e3:,.1f}", f"{planned.ratio:.2f}",
         f"{both.serial_ns / 1e3:,.1f}", f"{both.all_pairs.makespan_ns / 1e3:,.1f}",
         f"{planned.bandwidth_share:.0%}", found.races),
        (found.name, slots, still or "–"),
    )  # fmt: skip


def tables(names: Sequence[str]) -> Iterator[str]:
    """The tables in Markdown."""
    found = []
    for name, make in kernels().items():
        if names and name not in names:
            continue
        try:
            found.append(rows(measure(name, make())))
        except KernelError as error:
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr)
    for number, head in enumerate(HEADS):
        yield "| " + " | ".join(head) + " |"
        yield "|---" + "|---:" * (len(head) - 1) + "|" if number < 2 else "|---|---|---|"
        for each in found:
            yield "| " + " | ".join(map(str, each[number])) + " |"
        yield ""


def straight(names: Sequence[str]) -> Iterator[str]:
    """One row per program without a loop, as it is measured."""
    steps = ("check", "effects", "elision", "reduction", "analysis", "plan file")
    head = ("program", "pairs", "removed", "not looked at", "kept", *steps)
    yield "| " + " | ".join(head) + " |"
    yield "|---" * len(head) + "|"
    for name, make in straight_programs().items():
        if names and name not in names:
            continue
        graph = analyse(make(INSTRUCTIONS))
        seconds, counts = dict(graph.seconds), graph.counts
        assert counts is not None
        seconds["analysis"] = sum(seconds[step] for step in ("effects", "elision", "reduction"))
        began = time.process_time()
        plan_file.write(graph)
        seconds["plan file"] = time.process_time() - began
        numbers = (counts.pairs, counts.removed, counts.untested, len(graph.with_status("kept")))
        row = (name, *(f"{n:,}" for n in numbers), *(f"{seconds[step]:.1f}" for step in steps))
        yield "| " + " | ".join(row) + " |"


def write(file: Path, lines: Sequence[str]) -> None:
    """The tables between the page's two marks."""
    text = file.read_text(encoding="utf-8")
    head, mark, rest = text.partition(MARK)
    _, end, tail = rest.partition(END)
    if not mark or not end:
        sys.exit(f"{file} has no lines {MARK} and {END}")
    table = "\n".join(lines).rstrip()
    file.write_text(f"{head}{mark}\n{table}\n{end}{tail}", encoding="utf-8")


def main(arguments: list[str]) -> None:
    if "--write" in arguments:
        write(Path(arguments[arguments.index("--write") + 1]), list(tables(())))
        return
    is_straight = arguments[:1] == ["--straight"]
    for line in straight(arguments[1:]) if is_straight else tables(arguments):
        print(line, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
