"""Element-wise arithmetic and rearrangements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from wide import Array, wide


def add_inputs(a_input: Array, b_input: Array) -> Array:
    """a + b."""
    return wide(a_input) + wide(b_input)


def transpose_rows_as_matrices(in_tensor: Array, shape2D: Sequence[int]) -> Array:  # noqa: N803
    """Every row holds a matrix of `shape2D`, which is transposed."""
    count, (height, width) = len(in_tensor), shape2D
    return np.stack([row.reshape(height, width).T.ravel() for row in in_tensor]).reshape(count, -1)
