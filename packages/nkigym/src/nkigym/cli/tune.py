"""`nkigym tune`: search, prove, show, write."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from tempfile import gettempdir
from typing import Any, TextIO

from neuroncore.commands.folders import new_folder, remove_abandoned
from neuroncore.commands.parser import add_progress, add_target
from neuroncore.commands.reporting import add_report, write_report
from neuroncore.commands.streams import stdout_of_user
from neuroncore.commands.terminal import StatusLine
from neuroncore.program import Program
from neuroncore.surface import DEFAULT_VERSION
from neuroncore.targets import resolve_target
from neuroncore.timeline import estimate
from nkigym.cli.runners import BACKGROUND, add_device
from nkigym.cli.sweep import progress_line
from nkigym.cli.sweep import table as sweep_table
from nkigym.cli.writing import MARK, check_place, write_kernel
from nkigym.runners.background import Background
from nkigym.search import (
    STRATEGIES,
    Budget,
    BudgetError,
    SearchError,
    SearchProgress,
    Settings,
    parse_budget,
    used_seed,
)
from nkigym.sweeps import PRELOAD, SweepTask, run_sweep
from nkigym.tuning import Tuned, tune
from nkigym.tuning.execution import TEMPORARY
from nkigym.tuning.loading import load_kernel
from nkigym.tuning.schedule_steps import schedule_section
from nkigym.tuning.task import STARTS, tuning_task
from nkigym.tuning.tune import prepared
from tokenplan.executors import Limits
from tokenplan.executors.options import add_executor, executor_of, limits_of


@dataclass(slots=True)
class Progress:
    """Shows candidates, the best against its roofline, what is left of the budget."""

    budget: Budget
    stream: TextIO = field(default_factory=lambda: sys.stderr)
    lines: bool = False
    status: StatusLine = field(init=False)

    def __post_init__(self) -> None:
        self.status = StatusLine(self.stream, lines=self.lines)

    def __call__(self, seen: SearchProgress) -> None:
        self.status.show(line(seen, self.budget), seen.seconds)

    def close(self) -> None:
        """Remove the line."""
        self.status.close()


def line(seen: SearchProgress, budget: Budget) -> str:
    """The progress line of a search."""
    left = []
    if budget.seconds < inf:
        left.append(f"{max(0.0, budget.seconds - seen.seconds):.0f} s left")
    if budget.candidates < inf:
        left.append(f"{budget.candidates - seen.candidates:,} left")
    ratio = f" = {seen.best_ns / seen.bound_ns:.2f} x roofline" if seen.bound_ns else ""
    best = f"best {seen.best_ns / 1e3:,.1f} µs{ratio}"
    return ", ".join([f"{seen.candidates:,} candidates", best, *left])


def headed(tuned: Tuned, named: str) -> str:
    """The source below lines that say what it was tuned from, and how to get it again."""
    report = tuned.report
    rows = [
        f"{MARK} from {named}: change that and tune it again.",
        f"#   --target {tuned.root.target} --nki {tuned.root.nki} {tuned.options}",
        f"#   {report.best_ns / 1e3:,.2f} µs of {report.root_ns / 1e3:,.2f} µs, "
        f"{tuned.ratio:.2f} x what {tuned.binding} needs",
    ]
    rows += [f"#   {json.dumps(step)}" for step in tuned.schedule]
    return "\n".join([*rows, "", tuned.source])


FORMATS: Mapping[str, Callable[[Tuned], str]] = {
    "text": str,
    "json": lambda tuned: json.dumps(tuned.to_json()),
}
"""What --output-format offers."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options: the function to tune, the search, places of results."""
    add = parser.add_argument
    add("kernel", metavar="MODULE:FUNCTION|FILE",
        help="a NumPy function or an @nki.jit kernel (module or FILE.py), or a file with a kernel "
        "program or a tile program")  # fmt: skip
    add("--spec", action="append", default=[], metavar="[NAME=]DTYPE[SHAPE]",
        help="an argument's shape and format, such as 'x=f32[512,64]'; once for each")  # fmt: skip
    add_target(parser, None, " (default: trn2, or the program's)")
    add(
        "--nki",
        metavar="VERSION",
        help=f"of the source (default: {DEFAULT_VERSION}, or the program's)",
    )
    add("--budget", type=_budget, default=Budget(seconds=60), metavar="TIME|N",
        help="60s, 2min, or a number of candidates, which finds the same each time (default: 60s); "
        "proving the winner comes on top")  # fmt: skip
    add("--strategy", choices=tuple(STRATEGIES), default="descent",
        help="(default: descent)")  # fmt: skip
    add("--seed", type=int, default=0, metavar="N", help="negative: one that is drawn")
    add("--num-targets", type=int, metavar="N",
        help="random: stop once so many programs are deep enough")  # fmt: skip
    add("--min-depth", type=int, default=0, metavar="N", help="fewest steps of the winner")
    add("--max-depth", type=int, metavar="N", help="most steps of a candidate")
    add("--start", choices=tuple(STARTS), default="generated",
        help="the kernel to begin with; best: the faster; both: half of the budget for each "
        "(default: generated)")  # fmt: skip
    add("--compare", nargs="?", const="random,exhaustive", metavar="NAME[,NAME]",
        help="strategies that search with the same budget beside it, for their curves in the "
        "report (without names: random,exhaustive)")  # fmt: skip
    add("--engines", metavar="NAME[,NAME]", help="the engines that a candidate may use")
    add("--store", type=Path, metavar="FILE", help="store results there, and reuse its results")
    add("-o", dest="output", type=Path, metavar="FILE.py", help="write the winner's source there")
    add_executor(parser, "; with N seeds")
    add("--runner", choices=tuple(BACKGROUND),
        help="measure the start and the best candidates while the search goes on: their values "
        "here, or with the vendor's compiler on a device")  # fmt: skip
    add_device(parser)
    add_progress(parser)
    add_report(parser)
    add("--force", action="store_true", help="write over a file that nkigym has not written")
    add("--output-format", choices=tuple(FORMATS), default="text")


def run(given: argparse.Namespace) -> int:
    """Prints the winner; 1 where the store could not keep everything."""
    if given.output is not None:
        check_place(given.output, given.force)
    if given.target is not None:
        given.target = resolve_target(given.target).name
    with stdout_of_user(), _background(given) as background:
        tuned = (_searches if _has_jobs(given) else _search)(given, background)
        if background is not None:
            tuned = _measured(tuned, background)
    if given.output is not None:
        write_kernel(given.output, headed(tuned, given.kernel))
        tuned = replace(tuned, source="")
    with stdout_of_user():
        write_report("nkigym", given, _results, given, tuned)
    print(FORMATS[given.output_format](tuned))
    if tuned.report.stopped == "interrupted":
        sys.stderr.write("nkigym: interrupted; this is the best so far\n")
    if tuned.trouble is not None:
        sys.stderr.write(f"nkigym: {type(tuned.trouble).__name__}: {tuned.trouble}\n")
        return 1
    return 0


def _has_jobs(given: argparse.Namespace) -> bool:
    """Whether a search is a job: one of several, on a cluster, or with a limit."""
    is_limited = limits_of(given) != Limits()
    return given.ray is not None or given.jobs > 1 or is_limited


def _results(given: argparse.Namespace, tuned: Tuned) -> dict[str, Any]:
    """The contents of --report."""
    kernel, specs = load_kernel(given.kernel, given.spec, given.target, given.nki)
    engines = _constraints(given)["engines"]
    task = tuning_task(kernel, specs, given.target, given.nki, engines, tuned.start or given.start)
    section = schedule_section(task, tuned.schedule, tuned.report.curve)
    timelines = [estimate(p, mode="as_written") for p in (tuned.root, tuned.program)]
    return {"timelines": timelines, "schedules": [section], "text": ("Search", str(tuned))}


def _background(given: argparse.Namespace) -> AbstractContextManager[Background | None]:
    """What measures candidates, where a runner is named."""
    if given.runner is None:
        return nullcontext()
    kernel, _ = load_kernel(given.kernel, given.spec, given.target, given.nki)
    target = given.target or (kernel.target if isinstance(kernel, Program) else "trn2")
    return Background(BACKGROUND[given.runner](given, target), given.store)


def _measured(tuned: Tuned, background: Background) -> Tuned:
    """With the measurements; after Ctrl-C without the ones that remain."""
    if tuned.report.stopped != "interrupted":
        background.finish()
    return replace(tuned, measured=background.measured, trouble=tuned.trouble or background.trouble)


def _search(given: argparse.Namespace, background: Background | None) -> Tuned:
    """One search in this process."""
    kernel, specs = load_kernel(given.kernel, given.spec, given.target, given.nki)
    progress = Progress(given.budget, lines=given.progress)
    try:
        return tune(
            kernel, *specs, target=given.target, nki=given.nki, budget=given.budget,
            strategy=given.strategy, seed=given.seed, store=given.store, watcher=progress,
            candidates=background, **_constraints(given),
        )  # fmt: skip
    finally:
        progress.close()


def _constraints(given: argparse.Namespace) -> dict[str, Any]:
    """Arguments of `tune` about what a winner may be."""
    return {
        "min_depth": given.min_depth,
        "start": given.start,
        "compare": _names(given.compare or ""),
        "max_depth": inf if given.max_depth is None else given.max_depth,
        "engines": None if given.engines is None else _names(given.engines),
        "settings": Settings() if given.num_targets is None else Settings(given.num_targets),
    }


def _searches(given: argparse.Namespace, background: Background | None) -> Tuned:
    """As many searches as jobs, with consecutive seeds; the fastest winner, of the first seed.

    Raises BudgetError where a search may exceed a job's time, what `tune` raises before a search,
    SearchError where none has found one.
    """
    given.budget.check_below(given.job_time, given.kernel)
    kernel, specs = load_kernel(given.kernel, given.spec, given.target, given.nki)
    prepared(
        kernel, specs, given.target, given.nki, given.budget, given.strategy, given.seed,
        **_constraints(given),
    )  # fmt: skip
    first_seed = used_seed(given.seed)
    tasks = [
        SweepTask(
            given.kernel, tuple(given.spec), given.target, given.nki, given.budget, given.strategy,
            first_seed + number, _constraints(given),
        )
        for number in range(given.jobs)
    ]  # fmt: skip
    status = StatusLine(sys.stderr, lines=given.progress)
    remove_abandoned(Path(gettempdir()), f"{TEMPORARY}*")
    with new_folder(TEMPORARY) as folder:
        store = given.store or folder / "found.db"
        try:
            executor = executor_of(given, "nkigym", PRELOAD, store.resolve().parent)
            sweep = run_sweep(
                tasks, executor, store, lambda s: status.show(progress_line(s)), False, background
            )
        finally:
            status.close()
    if sweep.ordered:
        sys.stderr.write("".join(f"nkigym: {line}\n" for line in sweep_table(sweep.ordered)))
    if sweep.is_interrupted and not sweep.tuned:
        raise KeyboardInterrupt
    if not sweep.tuned:
        raise SearchError("no search has a result", got=sweep.ordered[0]["status"])
    return min(sweep.tuned.values(), key=lambda tuned: (tuned.report.best_ns, tuned.report.seed))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _budget(text: str) -> Budget:
    try:
        return parse_budget(text)
    except BudgetError as wrong:
        raise argparse.ArgumentTypeError(f"{wrong.what}; expected {wrong.expected}") from None
