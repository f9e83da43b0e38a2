"""What observing a run for the timeline costs on the timed case of every example kernel.

    python benchmarks/observing.py [--runs N]

CPU time of the process with single-threaded BLAS: the kernel alone, then with a recorder, so that a
slow moment of the machine affects both. The ratio is the median over N rounds of observed over
plain in the same round, after one round that is not counted. `estimate` is the whole of
nki_runtime.estimate on the same arguments, nothing executed, over the plain run. Nothing here is
asserted.
"""

# ruff: noqa: E402 - the number of BLAS threads is set before numpy is imported
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import warnings
from statistics import median
from typing import Any

from examples import LANGUAGES, cpu_ms, geometric_mean, load, timed_cases  # type: ignore

import nki_runtime
from neuroncore.errors import KernelError
from neuroncore.machine.observe import watched_by
from neuroncore.program import Recorder
from nki_migrate.verify.arrays import fill_array
from nki_migrate.verify.cases import Case

BOUND = 1.5  # on the geometric mean, from the goals of this project


def measure(backend: str, case: Case, runs: int) -> tuple[float, float, float | None]:
    """Milliseconds of the plain run, and what observing and estimating take of it."""
    given: dict[str, Any] = {
        a.name: fill_array(a, case.seed, 0, i) if a.is_array else a.value
        for i, a in enumerate(case.args)
    }
    with nki_runtime.use(backend=backend, nki=LANGUAGES[backend]):
        kernel = getattr(load(case.path), case.kernel)
        if case.grid is not None:
            kernel = kernel[case.grid]

        def observed() -> None:
            with watched_by(Recorder(kernel)):
                kernel(**given)

        def estimated() -> float | None:
            try:
                return cpu_ms(lambda: nki_runtime.estimate(kernel, **given))
            except KernelError:
                return None

        rounds = []
        for _ in range(runs + 1):
            rounds.append((cpu_ms(lambda: kernel(**given)), cpu_ms(observed), estimated()))
    plain = median(p for p, _, _ in rounds[1:])
    ratio = median(o / p for p, o, _ in rounds[1:])
    estimates = [e / p for p, _, e in rounds[1:] if e is not None]
    return plain, ratio, median(estimates) if estimates else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description="What observing a run costs.",
        epilog="example: python benchmarks/observing.py --runs 5",
    )
    parser.add_argument("--runs", type=int, default=9, help="rounds that count (default: 9)")
    runs = parser.parse_args().runs
    print(f"{'kernel':32}{'plain':>12}{'observed':>10}{'estimate':>10}")
    ratios: list[float] = []
    for backend, case in timed_cases():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain, ratio, estimate = measure(backend, case, runs)
        ratios.append(ratio)
        shown = "unsupported" if estimate is None else f"{estimate:.2f}"
        print(f"{backend + '/' + case.kernel:32}{plain:9.1f} ms{ratio:10.2f}{shown:>10}")
    print(f"{f'geometric mean (bound {BOUND})':44}{geometric_mean(ratios):10.2f}")


if __name__ == "__main__":
    main()
