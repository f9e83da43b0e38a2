"""How long `nki_runtime.estimate` of a kernel takes: running it, finding its loops, playing them.

python -m benchmarks.model.from_kernel plain
"""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import nki_runtime

KERNELS = Path(__file__).with_name("kernels.py")
NAMES = ("plain", "kept", "listed", "reloaded", "square", "column", "added", "transposed")
SIZE = 4096
ROUNDS = 5
ADDITIONS = 10_000_000  # one by one: what they take says how fast the computer is just now


def kernel_lines() -> Iterator[str]:
    """Per kernel the CPU seconds of its first estimate in a process, of some processes."""
    yield f"{ADDITIONS:,} additions: {_adding():.2f} s"
    for name in NAMES:
        times = sorted(_in_a_new_process(name) for _ in range(ROUNDS))
        each = " ".join(f"{seconds:.2f}" for seconds in times)
        yield f"matmul {SIZE}³ bf16 from a kernel, {name}: {each} s, each in a new process"


def _adding() -> float:
    start, total = process_time(), 0
    while total < ADDITIONS:
        total += 1
    return process_time() - start


def _in_a_new_process(name: str) -> float:
    command = [sys.executable, "-m", "benchmarks.model.from_kernel", name]
    root = Path(__file__).parents[2]
    said = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return float(said)


def seconds(name: str) -> float:
    """CPU time of one estimate of the kernel."""
    spec = ((SIZE, SIZE), "bfloat16")
    with nki_runtime.use(backend="beta2", nki="0.6", target="trn2"):
        kernel = runpy.run_path(str(KERNELS))[name]
        start = process_time()
        nki_runtime.estimate(kernel, spec, spec)
        return process_time() - start


if __name__ == "__main__":
    print(seconds(sys.argv[1]))
