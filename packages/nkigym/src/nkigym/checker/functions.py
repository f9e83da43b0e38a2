"""The functions of the checker: which values they have, atom by atom, and how they are computed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from nkigym.checker.findings import NotAllowedError
from nkigym.checker.operators import (
    Number,
    combined,
    function,
    product,
    reduced,
    scaled,
    total,
    transposed,
)

Shape = tuple[int, ...]
Corner: TypeAlias = tuple[int, int]
Inputs = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Function:
    """A function of two parameters (name and shape, in order) into outputs.

    `values` gives for each output the number of each atom by its first row and column; `inputs` are
    arrays whose products are exact and whose sums round, so that another order shows; `results` is
    what comes out of these, to the bit.
    """

    shapes: Callable[[Sequence[Shape]], Sequence[Shape]]
    values: Callable[[Sequence[tuple[str, Shape]], int, Number], Sequence[dict[Corner, int]]]
    inputs: Callable[[Sequence[tuple[str, Shape]], np.random.Generator], Inputs]
    results: Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]


def atom(name: str, row: int, column: int) -> tuple[str, int, int]:
    """The name of a parameter's atom that begins there."""
    return name, row, column


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
    for m, n in itertools.product(range(0, rows, size), range(0, columns, size)):
        stationary = {k: number(atom(left, k, m)) for k in range(0, depth, size)}
        found[m, n] = _contracted(stationary, right, n, _chunks(depth, size), number)
    return [found]


def _chunks(depth: int, size: int) -> list[range]:
    """The rows that are contracted at once, in atoms of that size."""
    return [range(k, min(k + CHUNK, depth), size) for k in range(0, depth, CHUNK)]


def _contracted(
    stationary: Mapping[int, int], right: str, n: int, chunks: Sequence[range], number: Number
) -> int:
    """The number of the product with column n of the right operand, chunk after chunk."""
    so_far: int | None = None
    for chunk in chunks:
        column = [stationary[k] for k in chunk]
        new = number(product(column, [number(atom(right, k, n)) for k in chunk]))
        so_far = new if so_far is None else number(total(so_far, new))
    assert so_far is not None
    return so_far


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
    chunks, found = _chunks(depth, size), {}
    for m in range(0, rows, size):
        row = {k: number(atom(left, m, k)) for chunk in chunks for k in chunk}
        scale = _rows_scale(row, chunks, depth, number)
        normal = {
            k: number(transposed(number(scaled(n, scale, "multiply")))) for k, n in row.items()
        }
        for n in range(0, columns, size):
            found[m, n] = _contracted(normal, right, n, chunks, number)
    return [found]


def _rows_scale(
    columns: Mapping[int, int], chunks: Sequence[range], depth: int, number: Number
) -> int:  # fmt: skip
    """The number of 1 / sqrt(mean of squares + EPSILON)."""
    so_far: int | None = None
    for chunk in chunks:
        squares = [number(function(columns[k], "square")) for k in chunk]
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

    Raises NotAllowedError where the number of columns is not a multiple of four.
    """
    (left, (rows, depth)), (right, shape) = parameters
    if depth % 4:
        raise NotAllowedError(
            f"rows of {depth} columns cannot represent an rmsnorm exactly; take 4, 8, …"
        )
    kinds = random.integers(1, 3 if depth % 16 == 0 else 2, rows)
    values = np.zeros((rows, depth), np.float32)
    for row, j in enumerate(kinds):
        filled = depth * (4**j - 1) // 4**j
        values[row, random.permutation(depth)[:filled]] = 2.0 ** (j - 10)
    return {left: values, right: random.integers(2**16, 2**17, shape).astype(np.float32)}


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


MEANING = {"add": np.add, "multiply": np.multiply}


def _inputs(
    parameters: Sequence[tuple[str, Shape]], random: np.random.Generator
) -> dict[str, np.ndarray]:
    """Integers, no two sums or products of which are likely to be equal; the products round."""
    return {
        name: random.integers(2**12, 2**20, shape).astype(np.float32) for name, shape in parameters
    }


def _of_two(*ops: str) -> Function:
    """An output for each operation on A and B, which may be narrower: it is repeated then."""

    def values(
        parameters: Sequence[tuple[str, Shape]], size: int, number: Number
    ) -> list[dict[Corner, int]]:
        (one, (rows, columns)), (other, (_, width)) = parameters
        places = list(itertools.product(range(0, rows, size), range(0, columns, size)))
        pairs = {
            (row, column): (
                number(atom(one, row, column)), number(atom(other, row, column % width)),
            )
            for row, column in places
        }  # fmt: skip
        return [{at: number(combined(*pairs[at], op)) for at in places} for op in ops]

    def results(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        one, other = inputs
        repeated = np.tile(other, (1, one.shape[1] // other.shape[1]))
        return [MEANING[op](one, repeated) for op in ops]

    return Function(lambda shapes: [shapes[0]] * len(ops), values, _inputs, results)


TENSOR_ADD = _of_two("add")
"""Also where the second array is repeated along the columns of the first."""
SUM_AND_PRODUCT = _of_two("add", "multiply")


FUNCTIONS: Mapping[str, Function] = {
    "matmul": MATMUL,
    "repeated_add": TENSOR_ADD,
    "rmsnorm_matmul": RMSNORM_MATMUL,
    "sum_and_product": SUM_AND_PRODUCT,
    "tensor_add": TENSOR_ADD,
}
