"""One instruction beside the bare NumPy operation with `out=`: CPU time, one BLAS thread.

    python benchmarks/instructions.py

Instructions are called as kernels of NKI 0.6 and 0.3 call them, by the language's names and with
keywords. Both sides are timed in turns in the same run; the best of many rounds counts. `bound` is
what we ask of ourselves: at (1, 1) an absolute time, at (128, 512) the (1, 1) cost plus 1.1 times
the bare operation. Nothing here is asserted.
"""

from __future__ import annotations

# ruff: noqa: E402 - the number of BLAS threads is read when NumPy loads
import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np

import nki_runtime
from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.memory import View
from nki_dtypes import bfloat16

Action = Callable[[], Any]
ROUNDS = 15
ROUND_SECONDS = 0.01
ONE, TILE = (1, 1), (128, 512)
VERSIONS = ("0.6", "0.3")


@dataclass(frozen=True, slots=True)
class Row:
    """What is timed, what NumPy does for it, and the bound in microseconds at (1, 1)."""

    name: str
    ours: Action
    bare: Action
    bound_us: float | None = None


def names(version: str) -> tuple[Any, Any]:
    """`nki.isa` and `nki.language` of a version, as kernels import them."""
    with nki_runtime.use(nki=version):
        import nki.isa as nisa
        import nki.language as nl

        return nisa, nl


def some(shape: tuple[int, ...], dtype: np.dtype | type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32).astype(dtype)


def in_sbuf(core: NeuronCore, values: np.ndarray) -> View:
    """A tile as kernels make it, holding `values`."""
    tile = core.allocate(values.shape, values.dtype, MemorySpace.sbuf)
    tile.initialize()
    tile.array[...] = values
    return tile


def float32_rows(version: str, shape: tuple[int, int]) -> Iterator[Row]:
    """The instructions of the table, on tiles of one shape."""
    nisa, nl = names(version)
    core = NeuronCore()
    x, y, column, out = some(shape), some(shape), some((shape[0], 1)), some(shape)
    tx, ty, tout = (in_sbuf(core, a) for a in (x, y, out))
    x, y, out = tx.array, ty.array, tout.array  # the bare operation works on the same memory
    far, tcolumn = core.adopt(x.copy()), core.adopt(column.copy(), MemorySpace.sbuf)
    dma_copy, tensor_copy, tensor_tensor = nisa.dma_copy, nisa.tensor_copy, nisa.tensor_tensor
    tensor_scalar, tensor_reduce = nisa.tensor_scalar, nisa.tensor_reduce
    yield Row("dma_copy", lambda: dma_copy(dst=tout, src=far), lambda: np.copyto(out, x), 3)
    yield Row("tensor_copy", lambda: tensor_copy(dst=tout, src=tx), lambda: np.copyto(out, x), 3)
    yield Row(
        "tensor_tensor",
        lambda: tensor_tensor(dst=tout, data1=tx, data2=ty, op=nl.add),
        lambda: np.add(x, y, out=out),
        3,
    )
    yield Row(
        "tensor_scalar",
        lambda: tensor_scalar(dst=tout, data=tx, op0=nl.multiply, operand0=2.0),
        lambda: np.multiply(x, 2.0, out=out),
        3,
    )
    yield Row(
        "tensor_reduce",
        lambda: tensor_reduce(dst=tcolumn, op=nl.add, data=tx, axis=1),
        lambda: np.add.reduce(x, 1, out=column, keepdims=True),
        3,
    )
    yield matmul_row(nisa, core, shape)


def matmul_row(nisa: Any, core: NeuronCore, shape: tuple[int, int]) -> Row:
    """(K, K) stationary, (K, N) moving, added to what PSUM holds."""
    left, right, out = some((shape[0], shape[0])), some(shape), some(shape)
    stationary, moving = (
        core.adopt(left.copy(), MemorySpace.sbuf),
        core.adopt(right.copy(), MemorySpace.sbuf),
    )
    acc, nc_matmul = core.adopt(out.copy(), MemorySpace.psum), nisa.nc_matmul
    return Row(
        "nc_matmul",
        lambda: nc_matmul(dst=acc, stationary=stationary, moving=moving),
        lambda: np.add(out, np.matmul(left.T, right), out=out),
        5,
    )


def bfloat16_rows() -> Iterator[Row]:
    """bfloat16 tiles, computed in float32 and rounded once; bounds for the whole tile."""
    nisa, nl = names("0.6")
    core, kind = NeuronCore(), bfloat16.storage
    x, y, out, column = some(TILE, kind), some(TILE, kind), some(TILE, kind), some((128, 1), kind)
    tx, ty, tout, tcolumn = (in_sbuf(core, a) for a in (x, y, out, column))
    x, y, out, column = (t.array for t in (tx, ty, tout, tcolumn))
    yield Row(
        "tensor_reduce",
        lambda: nisa.tensor_reduce(dst=tcolumn, op=nl.add, data=tx, axis=1),
        lambda: np.add.reduce(x, 1, out=column, keepdims=True),
        45,
    )
    yield Row(
        "tensor_tensor",
        lambda: nisa.tensor_tensor(dst=tout, data1=tx, data2=ty, op=nl.add),
        lambda: np.add(x, y, out=out),
        40,
    )


def slicing_rows() -> Iterator[Row]:
    """An operand's brackets."""
    x = some(TILE)
    for space in (MemorySpace.sbuf, MemorySpace.psum):
        tile = NeuronCore().adopt(x.copy(), space)
        yield Row(
            f"slicing, {space}", lambda tile=tile: tile[0:128, 0:256], lambda: x[0:128, 0:256], 1
        )


def in_turns(*actions: Action) -> list[float]:
    """Microseconds of CPU time per call of each: the best round, rounds taken in turns."""
    runs = [runs_for(action) for action in actions]
    best = [float("inf")] * len(actions)
    for _ in range(ROUNDS):
        for i, action in enumerate(actions):
            best[i] = min(best[i], seconds(action, runs[i]) / runs[i])
    return [s * 1e6 for s in best]


def runs_for(action: Action) -> int:
    runs = 1
    while seconds(action, runs) < ROUND_SECONDS:
        runs *= 2
    return runs


def seconds(action: Action, runs: int) -> float:
    start = process_time()
    for _ in range(runs):
        action()
    return process_time() - start


def line(*cells: object) -> None:
    name, *numbers = cells
    print(f"{name:<36}" + "".join(f"{number:>13}" for number in numbers))


def report(row: Row, where: str, bound: Callable[[float], float | None]) -> float:
    """Prints one line; gives our time."""
    ours, bare = in_turns(row.ours, row.bare)
    limit = bound(bare)
    shown = "" if limit is None else f"{limit:.2f}"
    line(f"{row.name} {where}", f"{ours:.2f}", f"{bare:.2f}", f"{ours / bare:.2f}", shown)
    return ours


def main() -> None:
    line("µs of CPU time", "ours", "bare NumPy", "ratio", "bound")
    for version in VERSIONS:
        rows = zip(float32_rows(version, ONE), float32_rows(version, TILE), strict=True)
        for small, large in rows:
            fixed = report(small, f"{version} (1, 1)", lambda bare, row=small: row.bound_us)
            report(large, f"{version} (128, 512)", lambda bare, fixed=fixed: fixed + 1.1 * bare)
    for row in bfloat16_rows():
        report(row, "bfloat16 (128, 512)", lambda bare, row=row: row.bound_us)
    for row in slicing_rows():
        report(row, "", lambda bare, row=row: row.bound_us)


if __name__ == "__main__":
    main()
