"""What running a program costs beside its instructions, and capturing a kernel beside running it.

    python benchmarks/programs.py

One BLAS thread, CPU time. Overhead per executed call is the time of a program of tiny instructions
less the bare NumPy operations on views that exist already.
"""

from __future__ import annotations

# ruff: noqa: E402 - the number of BLAS threads is read when NumPy loads
import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import runpy
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from neuroncore.program import capture, execute_program, parse_program, print_program
from nki_dtypes import STORAGE_DTYPES
from nki_runtime import use

CALLS = 100_000
KERNELS = Path(__file__).parents[1] / "tests" / "programs" / "kernels.py"

SAME_OFFSETS = """\
program("trn2", "0.6")
def p(x: float32[1, 1]):
    t = buffer(float32[1, 512], sbuf)
    memset(dst=t[:, :], value=1.0)
    for k in range(200):
        for i in range(500):
            tensor_tensor(dst=t[:, i : i + 1], data1=t[:, i : i + 1], data2=t[:, 0:1], op=multiply)
    return x
"""
NEW_OFFSETS = """\
program("trn2", "0.6")
def p(x: float32[100000, 1]):
    t = buffer(float32[1, 1], sbuf)
    for i in range(100000):
        dma_copy(dst=t[:, :], src=x[i : i + 1, :])
    return x
"""


def seconds(run: Callable[[], object], rounds: int = 5) -> float:
    """The least CPU time of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def multiply_again() -> None:
    tile = np.ones((1, 512), np.float32)
    views = [(tile[:, i : i + 1], tile[:, 0:1]) for i in range(500)] * (CALLS // 500)
    for left, right in views:
        np.multiply(left, right, out=left)


def copy_each() -> None:
    x, tile = np.ones((CALLS, 1), np.float32), np.zeros((1, 1), np.float32)
    for row in [x[i : i + 1] for i in range(CALLS)]:
        tile[...] = row


def main() -> None:
    for name, text, bare in (
        ("tensor_tensor (1, 1), offsets that come again", SAME_OFFSETS, multiply_again),
        ("dma_copy (1, 1), every offset new", NEW_OFFSETS, copy_each),
    ):
        program = parse_program(text)
        given = [np.ones(b.shape, np.float32) for b in program.parameters]
        ran, alone = seconds(lambda p=program, g=given: execute_program(p, g)), seconds(bare)
        print(f"{name:48} overhead {(ran - alone) / CALLS * 1e6:5.2f} us per call")
    with use("beta2", nki="0.6"):
        matmul = runpy.run_path(str(KERNELS))["matmul"]
        given = [
            np.random.default_rng(0).random((2048, 2048)).astype(STORAGE_DTYPES["bf16"])
            for _ in range(2)
        ]
        ran = seconds(lambda: matmul(*given), 1)
        caught = seconds(lambda: capture(matmul, *given), 1)
        lines = len(print_program(capture(matmul, *given)).splitlines())
    print(f"matmul 2048 x 2048 x 2048: run {ran:.2f} s, capture {caught:.2f} s, {lines} lines")


if __name__ == "__main__":
    main()
