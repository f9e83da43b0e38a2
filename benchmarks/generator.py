"""The generator's workloads: what each kernel executes, moves and takes, against its bounds.

    python benchmarks/generator.py [NAME …]

Counts are of the program that is emitted; "at most" are the bounds we hold ourselves to, "least"
what the inputs, outputs and tile limits of the machine allow (tiles of 8 KiB per partition).
A result that is only a view of an argument is one DMA from HBM to HBM: its counts hold and its runs
of a few bytes cost time; the reordering on chip that would be faster is not written yet.
Microseconds are the timeline's, mode compiled, without the launch. "Trace to source" is wall time.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import nkigen_lite
from neuroncore.errors import KernelError

MIB = 2**20


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def rmsnorm(x: Any, w: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-6) * w


def chain(x: Any, y: Any) -> Any:
    return np.sqrt(np.abs((np.exp(np.tanh(x) * y) + x) * (y - x)) + 1.0) * y


def line(x: Any) -> Any:
    return x * 2.0 + 1.0


def mm(a: Any, b: Any) -> Any:
    return np.matmul(a, b)


def attention(q: Any, k: Any, v: Any) -> Any:
    s = np.matmul(q, np.transpose(k, (0, 1, 3, 2))) * (1.0 / math.sqrt(q.shape[-1]))
    return np.matmul(softmax(s), v)


def gated(x: Any, wg: Any, wu: Any, wd: Any) -> Any:
    g = np.matmul(x, wg)
    return np.matmul(g / (1 + np.exp(-g)) * np.matmul(x, wu), wd)


def reverse_axes(x: Any) -> Any:
    return np.transpose(x, (3, 2, 1, 0))


def weight_transpose(x: Any) -> Any:
    return np.transpose(x, (0, 2, 3, 4, 1))


def strided(x: Any) -> Any:
    return x[:, :, 0:27:2, 0:27:2]


@dataclass(frozen=True, slots=True)
class Workload:
    """A function on arrays of these specs; bounds and least are (instructions, HBM MiB)."""

    name: str
    function: Callable[..., Any]
    specs: tuple[str, ...]
    at_most: tuple[int, float]
    least: tuple[int, float]


WORKLOADS = (
    Workload("softmax", softmax, ("f32[1024, 1024]",), (36, 8.1), (28, 8.0)),
    Workload("rmsnorm", rmsnorm, ("f32[1024, 1024]", "f32[1024]"), (38, 8.1), (34, 8.004)),
    Workload("chain", chain, ("f32[1024, 1024]",) * 2, (53, 12.1), (48, 12.0)),
    Workload("line", line, ("f32[1048576]",), (14, 8.1), (12, 8.0)),
    Workload("matmul", mm, ("f32[2048, 2048]",) * 2, (1500, 49.0), (1456, 48.0)),
    Workload("attention", attention, ("f32[1, 8, 512, 64]",) * 3, (430, 4.1), (390, 4.0)),
    Workload(
        "gated MLP", gated,
        ("f32[512, 1024]", "f32[1024, 4096]", "f32[1024, 4096]", "f32[4096, 1024]"),
        (1025, 53.0), (933, 52.0),
    ),
    Workload(
        "LM head", mm, ("bf16[1, 2048]", "bf16[2048, 128256]"), (5000, 511.0), (4801, 501.249)
    ),
    Workload("reverse axes", reverse_axes, ("f32[2, 8, 128, 64]",), (27, 1.1), (24, 1.0)),
    Workload(
        "weight transpose", weight_transpose, ("f32[1152, 3, 2, 16, 16]",), (30, 13.6), (27, 13.5)
    ),
    Workload("strided slice", strided, ("f32[1, 16, 32, 32]",), (3, 0.08), (1, 0.024)),
)  # fmt: skip

HEAD = (
    "| workload | instructions | at most | least | DMAs | HBM MiB | at most | least | µs | SBUF B "
    "| PSUM banks | trace to source s | |"
)


def row(workload: Workload) -> str:
    """One line of the table, or why there is none."""
    began = time.perf_counter()
    try:
        kernel = nkigen_lite.compile(workload.function, *workload.specs)
    except KernelError as refused:
        return f"| {workload.name} | not lowered: {str(refused).splitlines()[0]} |"
    assert kernel.source
    took = time.perf_counter() - began
    stats = kernel.stats
    mib = stats.hbm_bytes / MIB
    holds = stats.instructions <= workload.at_most[0] and mib <= workload.at_most[1]
    cells = (
        workload.name, stats.instructions, workload.at_most[0], workload.least[0], stats.dmas,
        f"{mib:.3f}", workload.at_most[1], workload.least[1], f"{stats.predicted_us:.1f}",
        stats.peak_sbuf_bytes_per_partition, stats.psum_banks, f"{took:.3f}",
        "holds" if holds else "ABOVE",
    )  # fmt: skip
    return "| " + " | ".join(map(str, cells)) + " |"


def main(names: list[str]) -> None:
    print(HEAD, "|---" * 13 + "|", sep="\n")
    for workload in WORKLOADS:
        if not names or workload.name in names:
            print(row(workload), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
