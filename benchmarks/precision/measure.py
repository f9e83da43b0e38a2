"""The largest error of an operation: of the decomposed graph, and of the kernel on the machine."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from benchmarks.precision.operations import Operation

import nkigen_lite
from nki_dtypes import STORAGE_DTYPES
from nkigen_lite.compiler.compile import lowered, rewritten


@dataclass(frozen=True, slots=True)
class Measured:
    """Errors in the operation's unit; `kernel` is what the emitted program gives on the machine."""

    operation: Operation
    dtype: str
    result: str
    graph: float
    kernel: float

    @property
    def at_most(self) -> float:
        return self.operation.at_most[self.dtype]


def measure(operation: Operation, dtype: str) -> Measured:
    """The operation on its inputs, the same ones each time."""
    storage = STORAGE_DTYPES[dtype]
    seed = zlib.crc32(f"{operation.name} {dtype}".encode())
    arrays = operation.inputs(np.random.default_rng(seed), storage)
    with np.errstate(all="ignore"):
        passes = rewritten(nkigen_lite.trace(operation.function, *arrays))
        of_graph = passes["decomposed"].run(*arrays)
        of_kernel = lowered(passes, "trn2", "0.6")(*arrays)
        found = [error(operation, result, arrays) for result in (of_graph, of_kernel)]
    return Measured(operation, dtype, of_kernel.dtype.name, *found)


def error(operation: Operation, result: np.ndarray, arrays: tuple[np.ndarray, ...]) -> float:
    """The largest, infinite where one of result and truth is finite and the other is not."""
    exact = operation.truth(*arrays)
    wide = result.astype(np.float64)
    unit = operation.unit(result.dtype, exact, *(a.astype(np.float64) for a in arrays))
    rounded = exact.astype(result.dtype).astype(np.float64)
    same = (wide == rounded) & np.isinf(wide) | (np.isnan(wide) & np.isnan(rounded))
    gap = np.where(same, 0.0, np.abs(wide - exact) / unit)
    return float(np.max(np.where(np.isnan(gap), np.inf, gap)))
