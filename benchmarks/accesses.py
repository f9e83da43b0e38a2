"""What forms of access cost under beta1, and how much memory the example kernels take.

    python benchmarks/accesses.py [--runs N]

A load of a (128, 512) float32 tile is written as a slice, with index expressions, and with masks
that cut nothing, or all but a corner of (100, 500), inside the tensor or at its end. CPU time per
load in a kernel of `TILES`, the least of N alternating runs after one that is not counted. The
ratio is over the slice of the same size in the same run, the median of the runs: what else happens
on the machine, and the position of its memory affect both.

Memory is the peak that Python and NumPy allocate while the timed case of an example runs
(tracemalloc), without its arguments, over the tensors that live at the same time (allocated in any
memory, counted when they are made and when they die). Nothing here is asserted.
"""

# ruff: noqa: E402 - the number of BLAS threads is set before numpy is imported
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import gc
import time
import tracemalloc
import weakref
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from examples import LANGUAGES, load, timed_cases  # type: ignore  # the file beside this one

import nki_runtime
from neuroncore.machine.observe import Watcher, watched_by
from neuroncore.memory import Storage
from nki_beta1 import nki, nl
from nki_migrate.verify.arrays import fill_array
from nki_migrate.verify.cases import Case

TILES = 64
P, F = 128, 512
BOUND = 2.0  # over the slice, and over the live tensors: the goals of this project


def _kernel(load_tile: Callable[[Any, int, Any, Any], Any]) -> Callable[..., Any]:
    """A kernel of TILES loads; `load_tile(x, first row, axis 0, axis 1)` is one of them."""

    @nki.jit
    def loads(x: Any) -> None:
        i, j = nl.arange(P)[:, None], nl.arange(F)[None, :]
        for n in nl.affine_range(TILES):
            load_tile(x, n * P, i, j)

    return loads


FORMS: dict[str, tuple[str, Callable[[Any, int, Any, Any], Any]]] = {
    "slice": ("slice", lambda x, r, i, j: nl.load(x[r : r + P, 0:F])),
    "index": ("slice", lambda x, r, i, j: nl.load(x[r + i, j])),
    "mask, nothing cut": (
        "slice",
        lambda x, r, i, j: nl.load(x[r + i, j], mask=(r + i < TILES * P) & (j < F)),
    ),
    "index, j // 8 * 8 + j % 8": (
        "slice",
        lambda x, r, i, j: nl.load(x[r + i, j // 8 * 8 + j % 8]),
    ),
    "slice 100 x 500": ("slice 100 x 500", lambda x, r, i, j: nl.load(x[r : r + 100, 0:500])),
    "mask, 100 x 500": (
        "slice 100 x 500",
        lambda x, r, i, j: nl.load(x[r + i, j], mask=(i < 100) & (j < 500)),
    ),
    "mask, past the end": (
        "slice 100 x 500",
        lambda x, r, i, j: nl.load(
            x[TILES * P - 100 + i, F - 500 + j],
            mask=(TILES * P - 100 + i < TILES * P) & (F - 500 + j < F),
        ),
    ),
}  # fmt: skip


def cpu_us(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return (time.process_time() - start) * 1e6 / TILES


def time_forms(runs: int) -> None:
    x = np.random.default_rng(0).standard_normal((TILES * P, F), np.float32)
    kernels = {name: _kernel(load_tile) for name, (_, load_tile) in FORMS.items()}
    times: dict[str, list[float]] = {name: [] for name in FORMS}
    for _ in range(runs + 1):
        for name, kernel in kernels.items():
            times[name].append(cpu_us(lambda kernel=kernel: kernel(x)))
    times = {name: own[1:] for name, own in times.items()}
    print(f"{f'load of ({P}, {F}) float32':32}{'per load':>12}{f'ratio (bound {BOUND})':>20}")
    for name, (over, _) in FORMS.items():
        ratio = median(own / slice_ for own, slice_ in zip(times[name], times[over], strict=True))
        print(f"{name:32}{min(times[name]):9.1f} us{ratio:20.2f}")


class LiveTensors(Watcher):
    """Bytes of the tensors that exist at the same time, at most."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def allocated(self, storage: Storage) -> None:
        size = storage.flat.nbytes
        self.now += size
        self.most = max(self.most, self.now)
        weakref.finalize(storage.flat, self._died, size)

    def _died(self, size: int) -> None:
        self.now -= size


def arguments(case: Case) -> dict[str, Any]:
    return {
        a.name: fill_array(a, case.seed, 0, i) if a.is_array else a.value
        for i, a in enumerate(case.args)
    }


def measure_memory(backend: str, case: Case) -> tuple[int, int]:
    """(peak bytes while it runs, bytes of live tensors), both without the arguments."""
    given = arguments(case)
    inputs = sum(a.nbytes for a in given.values() if isinstance(a, np.ndarray))
    with nki_runtime.use(backend=backend, nki=LANGUAGES[backend]):
        kernel = getattr(load(case.path), case.kernel)
        kernel = kernel if case.grid is None else kernel[case.grid]
        kernel(**given)  # what is remembered is not counted
        live = LiveTensors()
        with watched_by(live):
            kernel(**given)
        gc.collect()
        tracemalloc.start()
        kernel(**given)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return peak, live.most - inputs


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Forms of access under beta1, and memory of the examples.",
        epilog="example: python benchmarks/accesses.py --runs 5",
    )
    parser.add_argument("--runs", type=int, default=25, help="runs that count (default: 25)")
    time_forms(parser.parse_args().runs)
    print(f"\n{'memory':32}{'peak':>12}{'live':>12}{f'ratio (bound {BOUND})':>20}")
    for backend, case in timed_cases():
        peak, live = measure_memory(backend, case)
        name = f"{backend}/{case.kernel}"
        print(f"{name:32}{peak / 2**20:8.1f} MiB{live / 2**20:8.1f} MiB{peak / live:20.2f}")


if __name__ == "__main__":
    main()
