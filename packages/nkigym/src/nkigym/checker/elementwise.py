"""Functions of the elements of two arrays, as the checker knows them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from nkigym.checker.function import Corner, Function, Shape, atom
from nkigym.checker.operators import Number, combined

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
        places = list(product(range(0, rows, size), range(0, columns, size)))
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
