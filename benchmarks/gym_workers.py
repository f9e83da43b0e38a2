"""Independent tunings in one process, in a pool and on Ray: how many times as fast.

    python benchmarks/gym_workers.py [--tunings 40] [--candidates 5000] [--jobs 2]
                                     [--executors inprocess,pool,ray]

Start-up of the workers is printed separately. Two ratios: by the wall's clock, for a machine that
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
from neuroncore.executors import Executor, InProcess, pool, ray_cluster
from nkigym.search import Budget
from nkigym.sweeps import PRELOAD, Sweep, SweepTask, run_sweep

FUNCTION = str(Path(__file__).parents[1] / "examples/gym/softmax.py:softmax")
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
    one: tuple[float, float] | None = None
    for name in given.executors.split(","):
        executor = EXECUTORS[name](given.jobs)
        with termination_interrupts():
            wall, cpu, startup = measured(executor, given.tunings, given.candidates)
        one = one or (wall, cpu)
        times = 1 if name == "inprocess" else given.jobs
        print(
            f"{name:10} {wall:7.1f} s {one[0] / wall:5.2f} x, CPU {cpu:7.1f} s "
            f"{times * one[1] / cpu:5.2f} x, start-up {startup:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
