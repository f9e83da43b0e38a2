"""What checks cost on the timed case of every example kernel.

    python benchmarks/checks.py [--runs N] [CHECK ...]

CPU time of the process with single-threaded BLAS: the kernel alone and under each check in turn, so
that a slow moment of the machine affects all of them. The ratio is the median over N rounds of
watched over plain in the same round, after one round that is not counted. Nothing here is asserted;
the bound is on `memory`.
"""

# ruff: noqa: E402 - the number of BLAS threads is set before numpy is imported
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import warnings
from collections.abc import Sequence
from statistics import median
from typing import Any

from examples import LANGUAGES, cpu_ms, geometric_mean, load, timed_cases  # type: ignore

import nki_runtime
from neuroncore.checks import CHECKS, watching
from nki_migrate.verify.arrays import fill_array
from nki_migrate.verify.cases import Case

BOUND = 2.0  # on memory, from the goals of this project


def measure(backend: str, case: Case, names: Sequence[str], runs: int) -> list[float]:
    """The ratio of each check on one example."""
    given: dict[str, Any] = {
        a.name: fill_array(a, case.seed, 0, i) if a.is_array else a.value
        for i, a in enumerate(case.args)
    }
    with nki_runtime.use(backend=backend, nki=LANGUAGES[backend]):
        kernel = getattr(load(case.path), case.kernel)
        if case.grid is not None:
            kernel = kernel[case.grid]

        def under(name: str) -> None:
            with watching(name):
                kernel(**given)

        rounds = []
        for _ in range(runs + 1):
            plain = cpu_ms(lambda: kernel(**given))
            rounds.append([cpu_ms(lambda n=name: under(n)) / plain for name in names])
    return [median(ratios) for ratios in zip(*rounds[1:], strict=True)]


def main() -> None:
    watchers = [check.name for check in CHECKS.values() if check.watcher]
    parser = argparse.ArgumentParser(
        description="What checks cost on the example kernels.",
        epilog="example: python benchmarks/checks.py --runs 5 memory",
    )
    parser.add_argument("--runs", type=int, default=9, help="rounds that count (default: 9)")
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=f"of {', '.join(watchers)}")
    given = parser.parse_args()
    names = given.checks or watchers
    print(f"{'kernel':32}" + "".join(f"{name:>10}" for name in names))
    every: list[list[float]] = []
    for backend, case in timed_cases():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ratios = measure(backend, case, names, given.runs)
        every.append(ratios)
        print(f"{backend + '/' + case.kernel:32}" + "".join(f"{ratio:10.2f}" for ratio in ratios))
    columns = list(zip(*every, strict=True))
    print(f"{'geometric mean':32}" + "".join(f"{geometric_mean(list(c)):10.2f}" for c in columns))
    print(
        f"{f'largest (bound on memory {BOUND})':32}" + "".join(f"{max(c):10.2f}" for c in columns)
    )


if __name__ == "__main__":
    main()
