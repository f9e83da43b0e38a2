"""Whole kernels of NKI 0.6 beside the NumPy programs that mean the same: CPU time, one BLAS thread.

    python benchmarks/kernels.py [--runs N] [NAME ...]

prints a row for each workload of `kernel_workloads.py` whose name begins with a NAME. Kernel and
NumPy run in turns in one process, and so do the kernel with the recorder that a timeline is made
from and the kernel under the checks of memory and of traps, of the latter without the ones that
values decide and with them; the least of N times counts, and ratios are of those.
`added` is what the recorder adds to the peak of traced memory, by instruction, and `narrow` the
same where tiles have a quarter of the columns, which makes as many instructions.

With TRITON_VIZ_CHECKOUT=DIR (the public triton-viz), `peer` is the ratio of its own kernels for the
same functions, in its interpreter of NKI 0.2, in a process of its own. `calibration` is ten million
integer additions in a Python loop, to compare machines by. Nothing is asserted but results.
"""

# ruff: noqa: E402 - the number of BLAS threads is set before numpy is imported
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import gc
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples import EXAMPLES, cpu_ms, geometric_mean, load  # type: ignore
from kernel_workloads import WORKLOADS, Workload  # type: ignore

import nki_runtime
from neuroncore.checks import watching
from neuroncore.machine.observe import Event, Watcher, watched_by
from neuroncore.program import Recorder

MEAN, LARGEST, OBSERVED, CHECKED = 1.3, 2.5, 1.5, 2.0  # from the goals of this project
TRAPS, SCANNED = 1.3, 2.0
HEAD = (
    "ms", "NumPy", "ratio", "observed", "memory", "traps", "scanned", "peer", "instr.", "MiB",
    "added", "narrow",
)  # fmt: skip


class Counter(Watcher):
    """How many instructions were executed."""

    def __init__(self) -> None:
        self.count = 0

    def did(self, event: Event) -> None:
        self.count += 1


@dataclass(frozen=True, slots=True)
class Row:
    """What was measured of one workload: CPU times, peaks of traced memory."""

    kernel_ms: float
    numpy_ms: float
    observed_ms: float
    checked_ms: float
    traps_ms: float
    scanned_ms: float
    instructions: int
    peak_bytes: int
    added_bytes: int
    added_narrow: int | None

    def cells(self, peer_ms: float | None) -> list[str]:
        added = [None if n is None else n / self.instructions for n in self._added()]
        return [
            f"{self.kernel_ms:.1f}",
            f"{self.numpy_ms:.1f}",
            f"{self.kernel_ms / self.numpy_ms:.2f}",
            f"{self.observed_ms / self.kernel_ms:.2f}",
            f"{self.checked_ms / self.kernel_ms:.2f}",
            f"{self.traps_ms / self.kernel_ms:.2f}",
            f"{self.scanned_ms / self.kernel_ms:.2f}",
            "" if peer_ms is None else f"{peer_ms / self.numpy_ms:.2f}",
            str(self.instructions),
            f"{self.peak_bytes / 2**20:.0f}",
            *("" if n is None else f"{n:.0f} B" for n in added),
        ]

    def _added(self) -> tuple[int, int | None]:
        return self.added_bytes, self.added_narrow


@dataclass(frozen=True, slots=True)
class Subject:
    """A workload's kernel, loaded, with its arguments."""

    workload: Workload
    kernel: Any
    given: dict[str, Any]

    def plain(self) -> Any:
        return self.kernel(**self.given)

    def numpy(self) -> Any:
        return self.workload.reference(**self.given)

    def observed(self) -> Watcher:
        with watched_by(recorder := Recorder(self.kernel)):
            self.plain()
        return recorder

    def checked(self) -> None:
        with watching("memory"):
            self.plain()

    def traps(self) -> None:
        with watching("traps"):
            self.plain()

    def traps_ms(self, values: str) -> float:
        """Under the check of traps; `values`: whether the ones that values decide are found."""
        with nki_runtime.use(trap_values=values):
            return cpu_ms(self.traps)

    def instructions(self) -> int:
        with watched_by(counter := Counter()):
            self.plain()
        return counter.count

    def peaks(self) -> tuple[int, int]:
        """Bytes at the peak of a run, and what a recorder adds to that."""
        plain = peak_bytes(self.plain)
        return plain, peak_bytes(self.observed) - plain


def measure(workload: Workload, runs: int) -> Row:
    with nki_runtime.use(nki="0.6"):
        kernel = getattr(load(EXAMPLES / workload.file), workload.kernel)
        subject = Subject(workload, kernel, workload.arguments())
        workload.check(subject.plain())
        calls = (subject.plain, subject.numpy, subject.observed, subject.checked)
        rounds = [
            [*map(cpu_ms, calls), *map(subject.traps_ms, ("skip", "scan"))] for _ in range(runs)
        ]
        least = [*map(min, zip(*rounds, strict=True))]
        peak, added = subject.peaks()
        narrow = Subject(workload, kernel, workload.arguments(narrow=True))
        added_narrow = narrow.peaks()[1] if workload.narrow else None
        count = subject.instructions()
    ours, bare, seen, checked, traps, scanned = least
    sizes = count, peak, added, added_narrow
    return Row(ours, bare, seen, checked, traps, scanned, *sizes)


def peak_bytes(call: Callable[[], Any]) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        kept = call()  # what a run gives counts
        peak = tracemalloc.get_traced_memory()[1]
        del kept
        return peak
    finally:
        tracemalloc.stop()


def peer_times(runs: int) -> dict[tuple[str, str], float]:
    """(name, dtype) → milliseconds of the peer's kernel; none without a checkout."""
    if not os.environ.get("TRITON_VIZ_CHECKOUT"):
        return {}
    program = Path(__file__).parent / "kernels_peer.py"
    command = [sys.executable, str(program), str(runs)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = map(json.loads, said.splitlines())
    return {(row["name"], row["dtype"]): row["ms"] for row in rows}


def calibration_ms() -> float:
    """The machine's speed: ten million integer additions at module level, the least of three."""
    code = compile("x = 0\nfor i in range(10_000_000):\n    x += 1\n", "<calibration>", "exec")
    return min(cpu_ms(lambda: exec(code, {})) for _ in range(3))


def line(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Whole kernels against NumPy.",
        epilog="example: python benchmarks/kernels.py --runs 5 matmul softmax",
    )
    parser.add_argument("--runs", type=int, default=5, help="rounds (default: 5)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of names")
    given = parser.parse_args()
    chosen = [w for w in WORKLOADS if w.name.startswith(tuple(given.names) or "")]
    peer = peer_times(given.runs)
    before = calibration_ms()
    line("kernel", "dtype", "between", *HEAD)
    line(*["---"] * 3, *["---:"] * len(HEAD))
    rows = []
    for w in chosen:
        rows.append(row := measure(w, given.runs))
        line(w.name, w.dtype, w.between, *row.cells(peer.get((w.name, w.dtype))))
    print(f"calibration: {before:.0f} ms before, {calibration_ms():.0f} ms after")
    summarise(rows)


def summarise(rows: list[Row]) -> None:
    ratios = {
        f"kernel over NumPy (bounds {MEAN}, {LARGEST})": [r.kernel_ms / r.numpy_ms for r in rows],
        f"observed over not (bound {OBSERVED})": [r.observed_ms / r.kernel_ms for r in rows],
        f"under the memory check (bound {CHECKED})": [r.checked_ms / r.kernel_ms for r in rows],
        f"under the traps check without values (bound {TRAPS})": [
            r.traps_ms / r.kernel_ms for r in rows
        ],
        f"under the traps check (bound {SCANNED})": [r.scanned_ms / r.kernel_ms for r in rows],
    }
    for name, values in ratios.items():
        print(f"{name}: geometric mean {geometric_mean(values):.2f}, largest {max(values):.2f}")


if __name__ == "__main__":
    main()
