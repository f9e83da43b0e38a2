"""The search of tile programs: how long it takes, how much it holds, what a program costs.

    [NKI_AUTOTUNE_CHECKOUT=DIR] python benchmarks/gym.py [schedules] [--jobs N] [--store FILE]

Everything, which takes some ten minutes, or the searched schedules alone. A checkout of
awslabs/nki-autotune, with its history, is measured beside. One BLAS thread, CPU time.
Best of three where a line says so. The space of 2 x 2 x 2 tiles is counted in a process of its own,
whose peak is that of the search. Visits are steps of random walks over 8 x 8 x 8 tiles of 1024³,
each certified. The pipeline is 100 programs of 256³, ten or more steps from the root: searched,
certified by the checker, rolled, verified, written as source, executed, and compared to the bit.
A store is opened and its best read by the clock, with its file in the page cache.

Schedules are of the fifteen functions of gym_functions.toml, from their generated kernels on trn2:
a budget of candidates, so that the table is the same each time; with `--store` a run is resumed.
Steps of loop schedules, and hand-written schedules, are in gym_loops.py.
"""

from __future__ import annotations

# ruff: noqa: E402 - the number of BLAS threads is read when NumPy loads
import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import gym_loops
import numpy as np
from packages.nkigym.tests.loop_functions import REAL, matmul
from packages.nkigym.tests.loop_running import scheduled
from packages.nkigym.tests.loop_schedules import MATMUL

import nki_runtime
from neuroncore.program import check, emit, reroll
from neuroncore.timeline import latency_ns
from nkigym import RewriteGraph, certificate, matmul_root, rewrite_graph
from nkigym.baseline import baseline_kernel
from nkigym.store import Problem, Result, Store
from nkigym.sweeps import PRELOAD, read_sweep, run_sweep
from nkigym.tile_rewrites import Node, Walk, descend, walk
from nkigym.tiles.lowering import lower
from tokenplan.executors import InProcess, pool

VISITS, PROGRAMS, DEPTH, SEED = 2_000, 100, 10, 7
RESULTS, OPENED = 10_000, 20
FUNCTIONS = Path(__file__).with_name("gym_functions.toml")


_AsWritten = argparse.RawDescriptionHelpFormatter


def main() -> None:
    """Every line: what, how much, what it may be. `schedules` prints those alone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=_AsWritten)
    parser.add_argument("part", nargs="?", choices=("all", "schedules"), default="all")
    parser.add_argument("--jobs", type=int, metavar="N", default=1, help="(default: 1)")
    parser.add_argument("--store", type=Path, metavar="FILE", help="(default: a temporary one)")
    given = parser.parse_args()
    if given.part == "all":
        _print_programs()
    with tempfile.TemporaryDirectory() as folder:
        _print_schedules(given.jobs, given.store or Path(folder) / "found.db")


def _print_programs() -> None:
    """Everything but the searched schedules."""
    for arguments in ("2,2,2", "2,2,2 --reduced", "1,3,2", "1,2,3", "1,1,4"):
        found = _enumerated(*arguments.split())
        print(
            f"tiles {arguments:15} {found['unique']:6,} certified programs, {found['canonical']:6,}"
            f" canonical, {found['visited'] - 1:7,} transitions, {found['cpu_s']:.2f} s, "
            f"{found['peak_mb']:.0f} MB"
        )
    large = rewrite_graph(matmul_root(8, 8, 8))
    seconds, _ = _timed(lambda: walk(rewrite_graph(matmul_root(8, 8, 8)), VISITS, SEED))
    print(f"random walk, 8x8x8: {seconds / VISITS * 1e6:.0f} µs a certified visit (at most 150)")
    seconds, (end, _) = _timed(lambda: descend(large))
    left = len(large.tile_program(end).statements)
    print(f"descent, 8x8x8: {seconds:.2f} s from 1,601 to {left} statements (at most 1)")
    _print_rolling()
    _print_pipeline()
    _print_latency()
    _print_store()
    gym_loops.main()
    if os.environ.get("NKI_AUTOTUNE_CHECKOUT"):
        _print_peer()


def _print_peer() -> None:
    """The same by the public package, if a checkout is given: see gym_peer.py."""
    asked = {
        "tiles 2,2,2, nothing certified": ("tiles", "2,2,2"),
        "random growth, 8x8x8, nothing certified": ("tiles", "8,8,8", "4"),
        "random walk over its newest transforms, nothing certified": ("loops", "60"),
    }
    for name, arguments in asked.items():
        command = [sys.executable, str(Path(__file__).with_name("gym_peer.py")), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said = (done.stdout or done.stderr).strip().splitlines() or ["nothing"]
        print(
            f"public package, {name}: {said[-1] if not done.returncode else 'skipped: ' + said[-1]}"
        )


def _enumerated(tiles: str, *options: str) -> dict[str, Any]:
    """What `nkigym enumerate` says, in a process of its own."""
    command = [sys.executable, "-c", "from nkigym.cli import main; main()", "enumerate",
               "--tiles", tiles, *options, "--output-format", "json"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def _print_rolling() -> None:
    small = rewrite_graph(matmul_root(2, 2, 2))
    cases = {
        "29 statements": (small.program, 0.5),
        "of 256³, ten steps on": (small.tile_program(_deep(small, Random(SEED))), 0.5),
        "1,601 statements": (matmul_root(8, 8, 8), 30),
    }
    for name, (program, most) in cases.items():
        straight = lower(program)
        lowering = min(_timed(lambda p=program: lower(p))[0] for _ in range(3))
        rolling = min(_timed(lambda s=straight: reroll(s))[0] for _ in range(3))
        print(
            f"{name}: lowered in {lowering * 1e3:.2f} ms, rolled in {rolling * 1e3:.2f} ms "
            f"(at most {most}), best of three"
        )


def _print_pipeline() -> None:
    """The whole way of 100 programs, step by step."""
    space = rewrite_graph(matmul_root(2, 2, 2))
    random = Random(SEED)
    left, right = (
        np.random.default_rng(SEED).integers(-64, 64, (256, 256)).astype(np.float32)
        for _ in range(2)
    )
    wanted = (left.astype(np.float64).T @ right).astype(np.float32)
    took = dict.fromkeys(("search", "check", "roll", "verify", "emit", "execute"), 0.0)

    def timed(name: str, work: Callable[[], Any]) -> Any:
        seconds, result = _timed(work)
        took[name] += seconds
        return result

    seen: set[Node] = set()
    while len(seen) < PROGRAMS:
        node = timed("search", lambda: _deep(space, random))
        if node in seen:
            continue
        seen.add(node)
        findings = timed("check", lambda n=node: certificate(space, n).findings())
        rolled = timed("roll", lambda n=node: reroll(lower(space.tile_program(n))))
        timed("verify", lambda r=rolled: check(r))
        source = timed("emit", lambda r=rolled: emit(r))
        output = timed("execute", lambda s=source: _executed(s, left, right))
        assert not findings
        assert (output == wanted).all()
    parts = ", ".join(f"{name} {seconds:.2f}" for name, seconds in took.items())
    print(
        f"pipeline, {PROGRAMS} programs of 256³: {sum(took.values()):.2f} s (at most 10): {parts}"
    )


def _print_latency() -> None:
    """Of a matmul of 2048³, baseline and hand-scheduled."""
    start = baseline_kernel(matmul, *REAL[matmul])
    for name, program in {"baseline": start, "scheduled": scheduled(start, MATMUL)[0]}.items():
        costs = [_timed(lambda p=program: latency_ns(p, verified=True))[0] * 1e6 for _ in range(20)]
        print(
            f"estimate of a matmul, {name}: {costs[0]:.0f} µs, later {min(costs):.0f} µs, best of "
            "twenty"
        )


def _print_store() -> None:
    """Opening a store and reading the best of many results, by the clock."""
    problem = Problem("sha256:1", "f", "trn2", "0.7", "costs", "program f")
    steps = ({"transform": "split", "at": [1, 2], "factor": 2},) * DEPTH
    latencies = Random(SEED).sample(range(10**6), RESULTS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.db"
        with Store(path) as store:
            store.add(problem, [Result(f"{ns}", float(ns), 1.0, steps) for ns in latencies])
        taken = sorted(_opened(path, problem.key, min(latencies)) for _ in range(OPENED))
    middle, most = (1e3 * seconds for seconds in (taken[OPENED // 2], taken[-1]))
    print(
        f"store of {RESULTS:,} results: open and best {middle:.1f} ms median, {most:.1f} ms most "
        "(at most 50)"
    )


def _opened(path: Path, key: str, fastest_ns: float) -> float:
    began = time.perf_counter()
    with Store(path, create=False) as store:
        (best,) = store.best(key)
    assert best.latency_ns == fastest_ns
    return time.perf_counter() - began


def _print_schedules(jobs: int, store: Path) -> None:
    """The fastest schedule of each function, from its generated kernel, with what binds it."""
    executor = InProcess() if jobs == 1 else pool(jobs, preload=PRELOAD)
    sweep = run_sweep(read_sweep(FUNCTIONS), executor, store)
    print("| function | baseline µs | start µs | x roofline | best µs | times | x roofline "
          "| binding | gap removed | candidates | steps | not checked |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for row in sweep.ordered:
        assert row["status"] == "ok", row["status"]
        missing = [check.partition(":")[0] for check in row["checks"] if ": not checked" in check]
        print(
            "|", " | ".join([
                f"{row['function']} {' '.join(row['specs'])}",
                f"{row['baseline_ns'] / 1e3:,.1f}" if row["baseline_ns"] else "none",
                f"{row['root_ns'] / 1e3:,.1f}", f"{row['root_ratio']:.2f}",
                f"{row['best_ns'] / 1e3:,.1f}", f"{row['speedup']:.2f}", f"{row['ratio']:.2f}",
                row["binding"], f"{row['gap_removed']:.0%}", f"{row['candidates']:,}",
                f"{row['steps']}", ", ".join(missing) or "-",
            ]), "|",
        )  # fmt: skip
    print(f"geometric mean {sweep.mean_speedup:.2f} times, {sweep.seconds:.0f} s")


def _deep(space: RewriteGraph, random: Random) -> Node:
    """A program DEPTH steps from the root; walks that end before are given up."""
    while True:
        at = Walk(space, random)
        while at.opportunities and len(at.schedule) < DEPTH:
            at.step()
        if len(at.schedule) >= DEPTH:
            return at.node


def _executed(source: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder, nki_runtime.use(nki="0.6"):
        file = Path(folder) / "kernel.py"
        file.write_text(source, "utf-8")
        return runpy.run_path(str(file))["f"](left, right)


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


if __name__ == "__main__":
    main()
