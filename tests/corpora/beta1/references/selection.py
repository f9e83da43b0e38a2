"""Elements chosen by a predicate or by a range, and the maximum of what was chosen."""

from __future__ import annotations

import numpy as np
from wide import Array, wide

LOWEST = float(np.finfo(np.float32).min)


def chosen(predicate: Array, on_true_tensor: Array, on_false_tensor: Array) -> Array:
    """From the first tensor where the predicate holds, from the second elsewhere."""
    return np.where(predicate, on_true_tensor, on_false_tensor)


def chosen_or_lowest(predicate_data: Array, on_true_data: Array) -> Array:
    """The tensor where the predicate is not 0, the lowest float32 elsewhere."""
    return np.where(predicate_data != 0, wide(on_true_data), LOWEST)


def chosen_where_not(predicate_data: Array, on_true_data: Array) -> Array:
    """The tensor where the predicate is 0, the lowest float32 elsewhere."""
    return np.where(predicate_data == 0, wide(on_true_data), LOWEST)


def chosen_and_maximum(
    predicate_data: Array, on_true_data: Array, on_false_data: Array
) -> tuple[Array, Array]:
    """What was chosen from a tensor or a column, and the maximum of each row of it."""
    result = np.where(predicate_data != 0, on_true_data, on_false_data)
    return result, result.max(axis=1, keepdims=True)


def between_bounds_and_maximum(
    on_true: Array, bound0: Array, bound1: Array, range_start: int
) -> tuple[Array, Array]:
    """Columns k with bound0 <= start + k < bound1, the lowest float32 elsewhere; row maxima."""
    number = range_start + np.arange(on_true.shape[1])
    result = np.where((number >= bound0) & (number < bound1), wide(on_true), LOWEST)
    return result, result.max(axis=1, keepdims=True)


def moving_range_and_maximum(
    on_true: Array, bound0: Array, bound1: Array, range_start: int
) -> tuple[Array, Array]:
    """Three selections, each of values one higher and a range that starts 128 later.

    The last selection, and the maximum of all three.
    """
    steps = [
        between_bounds_and_maximum(
            wide(on_true) + step, bound0, bound1, range_start + step * on_true.shape[0]
        )
        for step in range(3)
    ]
    return steps[-1][0], np.max([maximum for _, maximum in steps], axis=0)
