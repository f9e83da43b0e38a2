"""A kernel of many small instructions at changing offsets beside the same NumPy calls.

    python benchmarks/mixed_instructions.py [--count N]

N instructions (30,000) of nine kinds in a random order of seed 0, each on tiles that are slices of
larger SBUF and PSUM tensors at random offsets, so that hardly two calls have the same operands.
CPU time with one BLAS thread, best of five runs taken in turns. "own" is the time per instruction
that NumPy's calls, with the same slices, do not take; the goals are 3 µs at [128, 128] and a ratio
of 1.2 at [128, 512]. Nothing here is asserted.
"""

from __future__ import annotations

# ruff: noqa: E402 - the number of BLAS threads is read when NumPy loads
import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from time import process_time
from typing import Any

import numpy as np

import nki_runtime

ROUNDS = 5
WIDTH = 4096
TENSORS = 3
Step = tuple[str, int, int, int, int]
"""The kind of an instruction, the tensor that it writes, and three offsets in columns."""

KINDS = (
    "tensor_tensor", "tensor_scalar", "tensor_copy", "activation", "dma_copy",
    "tensor_reduce", "memset", "nc_transpose", "nc_matmul",
)  # fmt: skip


def steps(count: int, columns: int) -> list[Step]:
    """`count` random steps on windows of `columns` columns."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(len(KINDS), size=count)
    tensors = rng.integers(TENSORS, size=count)
    offsets = rng.integers((WIDTH - columns) // 4, size=(count, 3)) * 4
    return [
        (KINDS[k], int(t), int(i), int(j), int(n))
        for k, t, (i, j, n) in zip(kinds, tensors, offsets, strict=True)
    ]


def kernel(nki: Any, columns: int, todo: Sequence[Step]) -> Callable[..., Any]:
    """The steps as a kernel of NKI 0.6."""
    import nki.isa as nisa
    import nki.language as nl

    @nki.jit
    def mixed(x: Any) -> Any:
        tiles = [nl.ndarray((128, WIDTH), dtype=nl.float32, buffer=nl.sbuf) for _ in range(TENSORS)]
        for tile in tiles:
            nisa.dma_copy(dst=tile, src=x)
        columns_of = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
        psum = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
        weight = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=weight, src=x[:, 0:128])
        out = nl.ndarray((128, WIDTH), dtype=nl.float32, buffer=nl.shared_hbm)
        n = columns
        for kind, t, i, j, k in todo:
            a, b, c = tiles[t], tiles[t - 1], tiles[t - 2]
            if kind == "tensor_tensor":
                nisa.tensor_tensor(
                    dst=a[:, i : i + n], data1=b[:, j : j + n], data2=c[:, k : k + n], op=nl.maximum
                )
            elif kind == "tensor_scalar":
                nisa.tensor_scalar(
                    dst=a[:, i : i + n], data=b[:, j : j + n], op0=nl.multiply, operand0=0.5
                )
            elif kind == "tensor_copy":
                nisa.tensor_copy(dst=a[:, i : i + n], src=b[:, j : j + n])
            elif kind == "activation":
                nisa.activation(dst=a[:, i : i + n], op=nl.square, data=b[:, j : j + n])
            elif kind == "dma_copy":
                nisa.dma_copy(dst=a[:, i : i + n], src=x[:, j : j + n])
            elif kind == "tensor_reduce":
                nisa.tensor_reduce(dst=columns_of, op=nl.maximum, data=b[:, j : j + n], axis=1)
            elif kind == "memset":
                nisa.memset(dst=a[:, i : i + n], value=1.0)
            elif kind == "nc_transpose":
                nisa.nc_transpose(dst=psum[:, 0:128], data=b[:, j : j + 128])
            else:
                nisa.nc_matmul(dst=psum[:, 0:n], stationary=weight, moving=b[:, j : j + n])
        nisa.dma_copy(dst=out, src=tiles[0])
        return out

    return mixed


def numpy_calls(columns: int, todo: Sequence[Step], x: np.ndarray) -> np.ndarray:
    """The same steps as NumPy calls with `out=`."""
    tiles = [x.copy() for _ in range(TENSORS)]
    columns_of = np.empty((128, 1), np.float32)
    psum = np.zeros((128, 512), np.float32)
    weight = x[:, 0:128].copy()
    n = columns
    for kind, t, i, j, k in todo:
        a, b, c = tiles[t], tiles[t - 1], tiles[t - 2]
        if kind == "tensor_tensor":
            np.maximum(b[:, j : j + n], c[:, k : k + n], out=a[:, i : i + n])
        elif kind == "tensor_scalar":
            np.multiply(b[:, j : j + n], np.float32(0.5), out=a[:, i : i + n])
        elif kind == "tensor_copy":
            np.copyto(a[:, i : i + n], b[:, j : j + n])
        elif kind == "activation":
            np.square(b[:, j : j + n], out=a[:, i : i + n])
        elif kind == "dma_copy":
            np.copyto(a[:, i : i + n], x[:, j : j + n])
        elif kind == "tensor_reduce":
            np.maximum.reduce(b[:, j : j + n], 1, out=columns_of, keepdims=True)
        elif kind == "memset":
            a[:, i : i + n].fill(1.0)
        elif kind == "nc_transpose":
            np.copyto(psum[:, 0:128], b[:, j : j + 128].T)
        else:
            product = np.matmul(weight.T, b[:, j : j + n])
            np.add(psum[:, 0:n], product, out=psum[:, 0:n])
    return tiles[0]


def seconds(action: Callable[[], Any]) -> float:
    start = process_time()
    action()
    return process_time() - start


def report(count: int, columns: int) -> None:
    import nki

    todo = steps(count, columns)
    x = np.random.default_rng(1).random((128, WIDTH), dtype=np.float32) / 128
    ours = partial(kernel(nki, columns, todo), x)
    bare = partial(numpy_calls, columns, todo, x)
    assert np.array_equal(ours(), bare()), "both sides must compute the same"
    runs = [(seconds(ours), seconds(bare)) for _ in range(ROUNDS)]
    total, numpy = (min(column) / count * 1e6 for column in zip(*runs, strict=True))
    print(
        f"[128, {columns}]{total:12.2f} µs{numpy:12.2f} µs"
        f"{total - numpy:10.2f} µs{total / numpy:10.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Many small instructions at changing offsets.")
    parser.add_argument("--count", type=int, default=30_000, help="instructions (default: 30000)")
    count = parser.parse_args().count
    print(f"{'tiles':10}{'an instruction':>15}{'NumPy':>15}{'own':>13}{'ratio':>10}")
    with nki_runtime.use(nki="0.6"):
        for columns in (128, 512):
            report(count, columns)


if __name__ == "__main__":
    main()
