"""Independent tunings in one process, in a pool and on Ray: how many times as fast.

    python benchmarks/gym_workers.py [--tunings 40] [--candidates 3000] [--jobs 2] [--ray]

Start-up of the workers is printed separately.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from nkigym.executors import Executor, InProcess, pool, ray_cluster
from nkigym.search import Budget
from nkigym.sweeps import SweepTask, run_sweep

FUNCTION = str(Path(__file__).parents[1] / "examples/gym/softmax.py:softmax")
PRELOAD = "nkigym.sweeps.sweep"


def seconds(executor: Executor, tunings: int, candidates: int) -> tuple[float, float]:
    """Seconds of the run without start-up, and of start-up."""
    tasks = [
        SweepTask(FUNCTION, ("f32[1024,512]",), "trn2", None, Budget(candidates), seed=seed)
        for seed in range(tunings)
    ]
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        sweep = run_sweep(tasks, executor, Path(folder) / "found.db")
        taken = time.monotonic() - began
    return taken - sweep.startup_s, sweep.startup_s


def main() -> None:
    """Print a row for each executor."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tunings", type=int, default=40)
    parser.add_argument("--candidates", type=int, default=3000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--ray", action="store_true")
    given = parser.parse_args()
    executors = [InProcess(), pool(given.jobs, preload=PRELOAD)]
    if given.ray:
        executors.append(ray_cluster("local", given.jobs, preload=PRELOAD))
    one = None
    for executor in executors:
        taken, startup = seconds(executor, given.tunings, given.candidates)
        one = taken if one is None else one
        print(f"{executor.name:10} {taken:7.1f} s {one / taken:5.2f} x  start-up {startup:.1f} s")


if __name__ == "__main__":
    main()
