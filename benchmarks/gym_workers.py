"""Independent tunings in one process, in a pool and on Ray: how many times as fast.

    python benchmarks/gym_workers.py [--tunings 40] [--candidates 5000] [--jobs 2]
                                     [--executors inprocess,pool,ray]

Start-up of the workers is printed separately, as is what a job without work costs on one worker
that is ready (`--tunings 0`: nothing else). Two ratios: by the wall's clock, for a machine that
does nothing else; and by the CPU time of all processes, from the first result to the last, for the
same with every core free: N workers at a time, what a cluster and a driver compute counted.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from neuroncore.commands.interruption import report_interruption, termination_interrupts
from nkigym.search import Budget
from nkigym.sweeps import PRELOAD, Sweep, SweepTask, run_sweep
from tokenplan.executors import Executor, InProcess, Job, pool, ray_cluster

FUNCTION = str(Path(__file__).parents[1] / "examples/gym/softmax.py:softmax")
NO_WORK, JOBS = "operator:is_", 300
TICKS = os.sysconf("SC_CLK_TCK")
EXECUTORS = {
    "inprocess": lambda jobs: InProcess(),
    "pool": lambda jobs: pool(jobs, preload=PRELOAD),
    "ray": lambda jobs: ray_cluster("local", jobs, preload=PRELOAD),
}


def cpu_seconds() -> float:
    """Of this process and all below it."""
    parents: dict[int, int] = {}
    seconds: dict[int, float] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        number = int(stat.parent.name)
        parents[number], seconds[number] = int(fields[1]), sum(map(int, fields[11:13])) / TICKS
    return sum(s for number, s in seconds.items() if os.getpid() in _above(number, parents))


def _above(number: int, parents: dict[int, int]) -> Iterator[int]:
    while number:
        yield number
        number = parents.get(number, 0)


def measured(executor: Executor, tunings: int, candidates: int) -> tuple[float, float, float]:
    """Seconds of the run without start-up, of CPU, and of start-up."""
    tasks = [
        SweepTask(FUNCTION, ("f32[4096,2048]",), "trn2", None, Budget(candidates), seed=seed)
        for seed in range(tunings)
    ]
    cpu: list[float] = []

    def watch(sweep: object) -> None:
        cpu.append(cpu_seconds())

    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        sweep = run_sweep(tasks, executor, Path(folder) / "found.db", watch)
        taken = time.monotonic() - began
    _check(sweep)
    return taken - sweep.startup_s, cpu[-1] - cpu[0], sweep.startup_s


def job_overhead_s(executor: Executor) -> float:
    """Seconds of a job that does nothing, behind others."""

    def run(jobs: int) -> float:
        began = time.monotonic()
        for number in range(jobs):
            executor.submit(Job(f"{number}", NO_WORK))
        executor.run(lambda event: None)
        return time.monotonic() - began

    with executor:
        run(JOBS // 10)
        return run(JOBS) / JOBS


def _check(sweep: Sweep) -> None:
    """End this process where a tuning has no result, with the reasons."""
    done = len(sweep.ordered)
    if sweep.is_interrupted:
        what = f"{done} of {len(sweep.tasks)}"
        raise SystemExit(report_interruption("gym_workers", what))
    if not sweep.is_complete:
        wrong = [f"lost {what}" for what in sweep.lost]
        for key, row in sweep.rows.items():
            if row["status"] != "ok":
                wrong += [f"seed {row['seed']}: {row['status']}", sweep.logs.get(key, "")]
        raise SystemExit("\n".join([f"{done} of {len(sweep.tasks)} tunings ended", *wrong]))


def main() -> None:
    """Print a row for each executor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tunings", type=int, default=40)
    parser.add_argument("--candidates", type=int, default=5000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--executors", default=",".join(EXECUTORS), metavar="NAME[,NAME]")
    given = parser.parse_args()
    try:
        with termination_interrupts():
            _print_rows(given.executors.split(","), given.jobs, given.tunings, given.candidates)
    except KeyboardInterrupt:
        raise SystemExit(report_interruption("gym_workers", "these rows are complete")) from None


def _print_rows(names: list[str], jobs: int, tunings: int, candidates: int) -> None:
    one: tuple[float, float] | None = None
    for name in names:
        make = EXECUTORS[name]
        if tunings:
            found = measured(make(jobs), tunings, candidates)
            one = one or found[:2]
            print(_row(name, found, one, 1 if name == "inprocess" else jobs), flush=True)
        print(f"{name:10} {job_overhead_s(make(1)) * 1e3:7.2f} ms a job", flush=True)


def _row(name: str, found: tuple[float, float, float], one: tuple[float, float], jobs: int) -> str:
    wall, cpu, startup = found
    return (
        f"{name:10} {wall:7.1f} s {one[0] / wall:5.2f} x, CPU {cpu:7.1f} s "
        f"{jobs * one[1] / cpu:5.2f} x, start-up {startup:.1f} s"
    )


if __name__ == "__main__":
    main()
