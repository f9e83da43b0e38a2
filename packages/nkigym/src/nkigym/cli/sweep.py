"""`nkigym sweep`: many tunings as one run that can be resumed."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import geometric_mean
from textwrap import indent

from neuroncore.commands.interruption import INTERRUPTED
from neuroncore.commands.parser import add_progress
from neuroncore.commands.streams import stdout_of_user
from neuroncore.commands.terminal import StatusLine
from nkigym.sweeps import PRELOAD, Row, Sweep, run_sweep
from nkigym.sweeps.tasks import EXAMPLE, read_sweep
from tokenplan.executors.options import add_executor, executor_of

HELP = f"""\
FILE.toml, with every field:

{indent(EXAMPLE, "  ")}
examples:
  nkigym sweep examples/gym/sweep.toml --jobs 2
  nkigym sweep examples/gym/sweep.toml --jobs 2 --ray local --store found.db

The exit code is 1 where a row has no result, 2 for a mistake in the options, the file or the store.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The file, where it runs, where results go."""
    parser.epilog = HELP
    add = parser.add_argument
    add("file", type=Path, metavar="FILE.toml", help="functions, shapes, targets and seeds")
    add_executor(parser)
    add("--store", type=Path, metavar="FILE",
        help="results, and where to resume (default: the name of FILE.toml with .db)")  # fmt: skip
    add_progress(parser)
    add("--output-format", choices=("text", "json"), default="text")


def run(given: argparse.Namespace) -> int:
    """Prints the table; 1 where a row has no result."""
    with stdout_of_user():
        tasks = read_sweep(given.file, given.job_time)
    store = given.store or Path(f"{given.file.stem}.db")
    status = StatusLine(sys.stderr, lines=given.progress)
    try:
        executor = executor_of(given, "nkigym", PRELOAD, store.resolve().parent)
        with stdout_of_user():
            sweep = run_sweep(tasks, executor, store, lambda s: status.show(progress_line(s)))
    finally:
        status.close()
    if given.output_format == "json":
        print(json.dumps(to_json(sweep)))
    else:
        print("\n".join([*table(sweep.ordered), "", *figures(sweep, store)]))
    if sweep.is_interrupted:
        sys.stderr.write(
            f"nkigym: interrupted; {len(sweep.rows)} of {len(sweep.tasks)} tasks are done, "
            f"{sweep.results:,} results of this run are in {store}: the same command continues\n"
        )
        return INTERRUPTED
    return 0 if sweep.is_complete else 1


def progress_line(sweep: Sweep) -> str:
    """The progress line of a terminal."""
    done, tasks = len(sweep.rows), len(sweep.tasks)
    parts = [f"{done} of {tasks} done", f"{sweep.results:,} results"]
    if sweep.best:
        ratio = geometric_mean(ns / bound_ns for ns, bound_ns in sweep.best.values())
        parts.append(f"best {ratio:.2f} x roofline")
    if (finished := done - sweep.resumed) > 0:
        left_s = (tasks - done) * (time.monotonic() - sweep.began) / finished
        parts.append(f"about {left_s:.0f} s left")
    return ", ".join(parts)


HEAD = (
    "function", "target", "seed", "baseline µs", "start µs", "x roofline", "best µs", "times",
    "x roofline", "binding", "gap removed",
)  # fmt: skip
LEFT = (0, 1, 9)
"""Columns of words."""
WITHOUT_RESULT = 3
"""Columns of a row without a result; its reason, which follows, widens no column."""


def table(rows: list[Row]) -> Iterator[str]:
    """Aligned columns; equal runs print equal tables on any executor."""
    lines = [HEAD, *_rows(rows)]
    widths = [
        max(len(cells[n]) for cells in lines if n < WITHOUT_RESULT or len(cells) == len(HEAD))
        for n in range(len(HEAD))
    ]
    for cells in lines:
        first, *others = [
            cell.ljust(width)
            if n in LEFT or n == len(cells) - 1 == WITHOUT_RESULT
            else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(cells, widths, strict=False))
        ]
        yield "  ".join([first, *others]).rstrip()


def _rows(rows: list[Row]) -> Iterator[tuple[str, ...]]:
    return map(_cells, rows, _names(rows))


def _names(rows: list[Row]) -> Iterator[str]:
    """Function and shapes; of a function whose name others share, its file as well."""
    sources = {(row["function"], row["source"]) for row in rows}
    number = Counter(function for function, _ in sources)
    for row in rows:
        file = f"{row['source']}:" * (number[row["function"]] > 1)
        yield f"{file}{row['function']} {' '.join(row['specs'])}"


def _cells(row: Row, name: str) -> tuple[str, ...]:
    head = (name, row["target"] or "", str(row["seed"]))
    if row["status"] != "ok":
        return (*head, row["status"].partition("\n")[0])
    baseline_ns, removed = row["baseline_ns"], row["gap_removed"]
    return (
        *head, "none" if baseline_ns is None else f"{baseline_ns / 1e3:,.2f}",
        f"{row['root_ns'] / 1e3:,.2f}", f"{row['root_ratio']:.2f}", f"{row['best_ns'] / 1e3:,.2f}",
        f"{row['speedup']:.2f}", f"{row['ratio']:.2f}", row["binding"],
        "none" if removed is None else f"{removed:.0%}",
    )  # fmt: skip


def figures(sweep: Sweep, store: Path) -> Iterator[str]:
    """The figures of this run."""
    if sweep.mean_speedup is not None:
        yield f"geometric mean {sweep.mean_speedup:.2f} times as fast as the start, all proved"
    yield (
        f"{len(sweep.tasks)} tasks, {sweep.resumed} of them from {store}; {sweep.executor}, "
        f"{sweep.seconds:.1f} s, of which {sweep.startup_s:.1f} s start-up, "
        f"{sweep.results:,} results"
    )
    for worker, jobs in sorted(sweep.shares.items()):
        yield f"  {worker}: {jobs} jobs, {sweep.busy_s[worker]:.1f} s"
    yield from (f"  lost {what}" for what in sweep.lost)
    early = sweep.unfinished
    for name, row in zip(_names(early), early, strict=True):
        about = f"{name} {row['target'] or ''}".rstrip() + f", seed {row['seed']}"
        yield f"  interrupted {about}: {row['best_ns'] / 1e3:,.2f} µs so far"


def to_json(sweep: Sweep) -> dict[str, object]:
    """Rows and figures as plain values."""
    return {
        "rows": sweep.ordered, "mean_speedup": sweep.mean_speedup, "resumed": sweep.resumed,
        "executor": sweep.executor, "seconds": sweep.seconds, "startup_s": sweep.startup_s,
        "results": sweep.results,
        "workers": {w: {"jobs": n, "seconds": sweep.busy_s[w]} for w, n in sweep.shares.items()},
        "lost": sweep.lost, "unfinished": sweep.unfinished, "logs": sweep.logs,
    }  # fmt: skip
