"""The timed case of every example kernel against its NumPy reference, on one core.

    python benchmarks/examples.py [--runs N]

CPU time of the process with single-threaded BLAS, the median of N alternating runs after one that
is not counted. `float32` is the reference with compute=np.float32, the program that a NumPy user
would write, and the baseline of the ratio; `float64` is the reference as the tests use it. Nothing
here is asserted.
"""

# ruff: noqa: E402 - the number of BLAS threads is set before numpy is imported
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import importlib.util
import inspect
import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import nki_runtime
from nki_migrate.verify.arrays import fill_array
from nki_migrate.verify.cases import Case, read_cases

EXAMPLES = Path(__file__).parent.parent / "examples"
LANGUAGES = {"beta1": "0.1", "beta2": "0.7"}
SMALLEST = 1024
BOUND = 1.6  # geometric mean of all ratios, from the goals of this project


@dataclass(frozen=True, slots=True)
class Timing:
    """Median CPU times of one kernel in milliseconds."""

    name: str
    kernel_ms: float
    float32_ms: float
    float64_ms: float

    @property
    def ratio(self) -> float:
        """Kernel over the float32 reference."""
        return self.kernel_ms / self.float32_ms


def timed_cases() -> Iterator[tuple[str, Case]]:
    """(language, case) of every case with sizes from SMALLEST on."""
    for backend in LANGUAGES:
        for case in read_cases(EXAMPLES / backend / "cases.toml"):
            if any(n >= SMALLEST for a in case.args for n in a.shape or ()):
                yield backend, case


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"timed_{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure(backend: str, case: Case, runs: int) -> Timing:
    """Time kernel and references in turn: a slow moment of the machine affects all of them."""
    assert case.reference is not None
    given: dict[str, Any] = {
        a.name: fill_array(a, case.seed, 0, i) if a.is_array else a.value
        for i, a in enumerate(case.args)
    }
    reference = getattr(load(case.reference[0]), case.reference[1])
    computes = "compute" in inspect.signature(reference).parameters  # a transpose does not
    narrow = {"compute": np.float32} if computes else {}
    with nki_runtime.use(backend=backend, nki=LANGUAGES[backend]):
        kernel = getattr(load(case.path), case.kernel)
        if case.grid is not None:
            kernel = kernel[case.grid]
        calls: list[Callable[[], Any]] = [
            lambda: kernel(**given),
            lambda: reference(**given, **narrow),
            lambda: reference(**given),
        ]
        times = [[cpu_ms(call) for call in calls] for _ in range(runs + 1)][1:]
    return Timing(f"{backend}/{case.kernel}", *map(statistics.median, zip(*times, strict=True)))


def cpu_ms(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return (time.process_time() - start) * 1e3


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, ratios)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Example kernels against NumPy.",
        epilog="example: python benchmarks/examples.py --runs 3",
    )
    parser.add_argument("--runs", type=int, default=9, help="runs that count (default: 9)")
    runs = parser.parse_args().runs
    print(f"{'kernel':32}{'kernel':>10}{'float32':>10}{'float64':>10}{'ratio':>8}")
    ratios: dict[str, list[float]] = {backend: [] for backend in LANGUAGES}
    for backend, case in timed_cases():
        t = measure(backend, case, runs)
        ratios[backend].append(t.ratio)
        print(
            f"{t.name:32}{t.kernel_ms:7.1f} ms{t.float32_ms:7.1f} ms{t.float64_ms:7.1f} ms"
            f"{t.ratio:8.2f}"
        )
    for backend, own in ratios.items():
        print(f"{f'geometric mean, NKI {LANGUAGES[backend]}':62}{geometric_mean(own):8.2f}")
    everything = [ratio for own in ratios.values() for ratio in own]
    print(f"{f'geometric mean, all (bound {BOUND})':62}{geometric_mean(everything):8.2f}")


if __name__ == "__main__":
    main()
