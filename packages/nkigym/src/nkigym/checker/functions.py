"""What a tile program has to compute, said without tiles' order or names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nkigym.checker.operators import Number, product, total

CHUNK = 128
"""Rows that are contracted at once; chunks are added in their order."""

Shape = tuple[int, ...]
Corner: TypeAlias = tuple[int, int]
Inputs = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of parameters (name and shape, in order) into one output.

    `values` gives the number of each atom of the output by its first row and column; `inputs` are
    arrays whose products are exact and whose sums round, so that another order shows; `result` is
    what comes out of these, to the bit.
    """

    shape: Callable[[Sequence[Shape]], Shape]
    values: Callable[[Sequence[tuple[str, Shape]], int, Number], dict[Corner, int]]
    inputs: Callable[[Sequence[tuple[str, Shape]], np.random.Generator], Inputs]
    result: Callable[[Sequence[np.ndarray]], np.ndarray]


def atom(name: str, row: int, column: int) -> tuple[str, int, int]:
    """What the atom of a parameter that begins there is called."""
    return name, row, column


def _matmul_values(
    parameters: Sequence[tuple[str, Shape]], size: int, number: Number
) -> dict[Corner, int]:
    """Of output = A.T @ B in atoms of `size` x `size`, K chunk by chunk."""
    (left, (depth, rows)), (right, (_, columns)) = parameters
    found = {}
    for m in range(0, rows, size):
        for n in range(0, columns, size):
            so_far: int | None = None
            for start in range(0, depth, CHUNK):
                chunk = range(start, min(start + CHUNK, depth), size)
                column = [number(atom(left, k, m)) for k in chunk]
                other = [number(atom(right, k, n)) for k in chunk]
                new = number(product(column, other))
                so_far = new if so_far is None else number(total(so_far, new))
            assert so_far is not None
            found[m, n] = so_far
    return found


def _matmul_inputs(
    parameters: Sequence[tuple[str, Shape]], random: np.random.Generator
) -> dict[str, np.ndarray]:
    """Integers: 128 products add up to at most 128 · 255 · 511 < 2²⁴, exactly, in any order. Two
    such sums are beyond 2²⁴ and round.
    """
    (left, shape), (right, shape_too) = parameters
    return {
        left: random.integers(128, 256, shape).astype(np.float32),
        right: random.integers(256, 512, shape_too).astype(np.float32),
    }


def _matmul_result(inputs: Sequence[np.ndarray]) -> np.ndarray:
    """Products in float64, which is exact here, added chunk by chunk in float32."""
    left, right = (array.astype(np.float64) for array in inputs)
    chunks = [slice(start, start + CHUNK) for start in range(0, len(left), CHUNK)]
    products = [(left[chunk].T @ right[chunk]).astype(np.float32) for chunk in chunks]
    so_far = products[0]
    for one in products[1:]:
        so_far = so_far + one
    return so_far


FUNCTIONS: Mapping[str, Function] = {
    "matmul": Function(
        shape=lambda shapes: (shapes[0][1], shapes[1][1]),
        values=_matmul_values,
        inputs=_matmul_inputs,
        result=_matmul_result,
    ),
}
