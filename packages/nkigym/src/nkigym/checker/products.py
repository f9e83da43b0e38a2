"""Products of matrices, and what is done to rows before, as the checker knows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nkigym.checker.findings import NotAllowedError
from nkigym.checker.function import Corner, Function, Shape, atom
from nkigym.checker.operators import (
    Number,
    combined,
    function,
    product,
    reduced,
    scaled,
    total,
    turned,
)

CHUNK = 128
"""Rows that are contracted at once; chunks are added in their order."""

EPSILON = 2.0**-20
"""What rmsnorm adds to the mean of squares."""


def _matmul_values(
    parameters: Sequence[tuple[str, Shape]], size: int, number: Number
) -> list[dict[Corner, int]]:
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
    return [found]


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


def _matmul_results(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [_chunk_by_chunk(*inputs)]


def _chunk_by_chunk(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """left.T @ right: products in float64, exact here, added chunk by chunk in float32."""
    left, right = left.astype(np.float64), right.astype(np.float64)
    chunks = [slice(start, start + CHUNK) for start in range(0, len(left), CHUNK)]
    products = [(left[chunk].T @ right[chunk]).astype(np.float32) for chunk in chunks]
    so_far = products[0]
    for one in products[1:]:
        so_far = so_far + one
    return so_far


# -- rows divided by their root mean square --------------------------------------------------------


def _rmsnorm_values(
    parameters: Sequence[tuple[str, Shape]], size: int, number: Number
) -> list[dict[Corner, int]]:
    """Of output = (A / sqrt(mean(A², 1) + EPSILON)) @ B, chunk by chunk of A's columns."""
    (left, (rows, depth)), (right, (_, columns)) = parameters
    chunks = [range(k, min(k + CHUNK, depth), size) for k in range(0, depth, CHUNK)]
    found = {}
    for m in range(0, rows, size):
        held = {k: number(atom(left, m, k)) for chunk in chunks for k in chunk}
        scale = _rows_scale(held, chunks, depth, number)
        normal = {k: number(turned(number(scaled(n, scale, "multiply")))) for k, n in held.items()}
        for n in range(0, columns, size):
            so_far: int | None = None
            for chunk in chunks:
                other = [number(atom(right, k, n)) for k in chunk]
                new = number(product([normal[k] for k in chunk], other))
                so_far = new if so_far is None else number(total(so_far, new))
            assert so_far is not None
            found[m, n] = so_far
    return [found]


def _rows_scale(
    held: Mapping[int, int], chunks: Sequence[range], depth: int, number: Number
) -> int:  # fmt: skip
    """The number of 1 / sqrt(mean of squares + EPSILON)."""
    so_far: int | None = None
    for chunk in chunks:
        squares = [number(function(held[k], "square")) for k in chunk]
        new = number(reduced(squares, "add"))
        so_far = new if so_far is None else number(combined(so_far, new, "add"))
    assert so_far is not None
    return number(function(so_far, "rsqrt", 1 / depth, EPSILON))


def _rmsnorm_inputs(
    parameters: Sequence[tuple[str, Shape]], random: np.random.Generator
) -> dict[str, np.ndarray]:
    """Rows whose mean square and EPSILON are a power of four, for a power of two of columns: of
    (4^j - 1) / 4^j of the elements, all 2^(j - 10). What they become is 1 and 0, so products with
    integers below 2¹⁷ are exact and add up, 128 of them, to at most 2²⁴; two such sums round.

    Raises NotAllowedError for less than four columns, of which there are no such rows.
    """
    (left, (rows, depth)), (right, shape) = parameters
    if depth % 4:
        raise NotAllowedError(f"no rows of {depth} columns show an rmsnorm exactly; take 4, 8, …")
    kinds = random.integers(1, 3 if depth % 16 == 0 else 2, rows)
    held = np.zeros((rows, depth), np.float32)
    for row, j in enumerate(kinds):
        filled = depth * (4**j - 1) // 4**j
        held[row, random.permutation(depth)[:filled]] = 2.0 ** (j - 10)
    return {left: held, right: random.integers(2**16, 2**17, shape).astype(np.float32)}


def _rmsnorm_results(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    left, right = inputs
    mean = np.mean(left.astype(np.float64) ** 2, axis=1, keepdims=True)
    normal = left / np.sqrt(mean + EPSILON)
    return [_chunk_by_chunk(normal.T, right)]


MATMUL = Function(
    shapes=lambda shapes: [(shapes[0][1], shapes[1][1])],
    values=_matmul_values,
    inputs=_matmul_inputs,
    results=_matmul_results,
)

RMSNORM_MATMUL = Function(
    shapes=lambda shapes: [(shapes[0][0], shapes[1][1])],
    values=_rmsnorm_values,
    inputs=_rmsnorm_inputs,
    results=_rmsnorm_results,
)
