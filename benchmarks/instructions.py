"""One instruction beside the bare NumPy operation with `out=`: CPU time, one BLAS thread.

    python benchmarks/instructions.py

Both are timed in turns in the same run; the best of many rounds counts. `bound` is what we ask of
ourselves: at (1, 1) an absolute time, at (128, 512) the (1, 1) cost plus 1.1 times the bare
operation. Nothing here is asserted.
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

from neuroncore.calls import make_function
from neuroncore.core import NeuronCore
from neuroncore.engines import Space
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.memory import View
from neuroncore.surface import signature
from nki_dtypes import bfloat16

Action = Callable[[], Any]
ROUNDS = 15
ROUND_SECONDS = 0.01
ONE, TILE = (1, 1), (128, 512)


@dataclass(frozen=True, slots=True)
class Row:
    """What is timed, what NumPy does for it, and the bound in microseconds at (1, 1)."""

    name: str
    ours: Action
    bare: Action
    bound_us: float | None = None


def isa(name: str) -> Callable[..., Any]:
    """The function of NKI 0.6 that kernels call."""
    found = signature(name, "0.6")
    assert found is not None
    return make_function(INSTRUCTIONS[name], found)


def some(shape: tuple[int, ...], dtype: np.dtype | type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32).astype(dtype)


def in_sbuf(core: NeuronCore, values: np.ndarray) -> View:
    """A tile as kernels make it, holding `values`."""
    tile = core.allocate(values.shape, values.dtype, Space.sbuf)
    tile.settle()
    tile.array[...] = values
    return tile


def float32_rows(shape: tuple[int, int]) -> Iterator[Row]:
    """The instructions of the table, on tiles of one shape."""
    core = NeuronCore()
    x, y, column, out = some(shape), some(shape), some((shape[0], 1)), some(shape)
    tx, ty, tout = (in_sbuf(core, a) for a in (x, y, out))
    x, y, out = tx.array, ty.array, tout.array  # the bare operation works on the same memory
    far, tcolumn = core.adopt(x.copy()), core.adopt(column.copy(), Space.sbuf)
    dma_copy, tensor_copy, tensor_tensor = isa("dma_copy"), isa("tensor_copy"), isa("tensor_tensor")
    tensor_scalar, tensor_reduce = isa("tensor_scalar"), isa("tensor_reduce")
    yield Row("dma_copy", lambda: dma_copy(tout, far), lambda: np.copyto(out, x), 4)
    yield Row("tensor_copy", lambda: tensor_copy(tout, tx), lambda: np.copyto(out, x), 4)
    yield Row(
        "tensor_tensor",
        lambda: tensor_tensor(tout, tx, ty, "add"),
        lambda: np.add(x, y, out=out),
        4,
    )
    yield Row(
        "tensor_scalar",
        lambda: tensor_scalar(tout, tx, "multiply", 2.0),
        lambda: np.multiply(x, 2.0, out=out),
        4,
    )
    yield Row(
        "tensor_reduce",
        lambda: tensor_reduce(tcolumn, "add", tx, 1),
        lambda: np.add.reduce(x, 1, out=column, keepdims=True),
        4,
    )
    yield matmul_row(core, shape)


def matmul_row(core: NeuronCore, shape: tuple[int, int]) -> Row:
    """(K, K) stationary, (K, N) moving, overwriting PSUM."""
    left, right, out = some((shape[0], shape[0])), some(shape), some(shape)
    stationary, moving = core.adopt(left.copy(), Space.sbuf), core.adopt(right.copy(), Space.sbuf)
    acc, nc_matmul = core.adopt(out.copy(), Space.psum), isa("nc_matmul")
    return Row(
        "nc_matmul",
        lambda: nc_matmul(acc, stationary, moving, accumulate=False),
        lambda: np.matmul(left.T, right, out=out),
        6,
    )


def bfloat16_rows() -> Iterator[Row]:
    """bfloat16 tiles, computed in float32 and rounded once; bounds for the whole tile."""
    core, kind = NeuronCore(), bfloat16.storage
    x, y, out, column = some(TILE, kind), some(TILE, kind), some(TILE, kind), some((128, 1), kind)
    tx, ty, tout, tcolumn = (in_sbuf(core, a) for a in (x, y, out, column))
    x, y, out, column = (t.array for t in (tx, ty, tout, tcolumn))
    tensor_tensor, tensor_reduce = isa("tensor_tensor"), isa("tensor_reduce")
    yield Row(
        "tensor_reduce",
        lambda: tensor_reduce(tcolumn, "add", tx, 1),
        lambda: np.add.reduce(x, 1, out=column, keepdims=True),
        45,
    )
    yield Row(
        "tensor_tensor",
        lambda: tensor_tensor(tout, tx, ty, "add"),
        lambda: np.add(x, y, out=out),
        40,
    )


def slicing_rows() -> Iterator[Row]:
    """An operand's brackets."""
    x = some(TILE)
    for space in (Space.sbuf, Space.psum):
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
    for small, large in zip(float32_rows(ONE), float32_rows(TILE), strict=True):
        fixed = report(small, "float32 (1, 1)", lambda bare, row=small: row.bound_us)
        report(large, "float32 (128, 512)", lambda bare, fixed=fixed: fixed + 1.1 * bare)
    for row in bfloat16_rows():
        report(row, "bfloat16 (128, 512)", lambda bare, row=row: row.bound_us)
    for row in slicing_rows():
        report(row, "", lambda bare, row=row: row.bound_us)


if __name__ == "__main__":
    main()
