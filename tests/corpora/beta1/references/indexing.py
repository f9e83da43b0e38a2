"""Rows and groups that are copied or added to where an index says."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def copied(a: Array) -> Array:
    """The same values."""
    return a.copy()


def copied_in(in_tensor: Array) -> Array:
    """The same values."""
    return in_tensor.copy()


def every_second_row(in_tensor: Array) -> Array:
    """Rows 0, 2, 4, ..."""
    return in_tensor[::2]


def every_third_row_while_inside(in_tensor: Array) -> Array:
    """Rows 0, 3, 6, ... fill half as many rows as given; -1 where they have run out."""
    rows = np.full((len(in_tensor) // 2, in_tensor.shape[1]), -1.0)
    inside = in_tensor[::3]
    rows[: len(inside)] = inside
    return rows


def first_index_outside(in_tensor: Array) -> Array:
    """The first multiple of 3 that is not a row of the tensor."""
    return np.asarray([-(-len(in_tensor) // 3) * 3])


def first_index_outside_twice_the_rows(in_tensor: Array) -> Array:
    """The first multiple of 3 that is not one of twice as many rows."""
    return np.asarray([-(-2 * len(in_tensor) // 3) * 3])


def spread_to_every_second_row(in_tensor: Array) -> Array:
    """The rows at 0, 2, 4, ... of twice as many, -1 between them."""
    rows = np.full((2 * len(in_tensor), in_tensor.shape[1]), -1.0)
    rows[::2] = in_tensor
    return rows


def spread_to_every_third_row(in_tensor: Array) -> Array:
    """The rows at 0, 3, 6, ... of twice as many, as far as there is room; -1 between them."""
    rows = np.full((2 * len(in_tensor), in_tensor.shape[1]), -1.0)
    rows[::3] = in_tensor[: len(rows[::3])]
    return rows


def added_to_every_second_row_of_ones(in_tensor: Array) -> Array:
    """Ones in twice as many rows; the given rows are added to rows 0, 2, 4, ..."""
    rows = np.ones((2 * len(in_tensor), in_tensor.shape[1]))
    rows[::2] += wide(in_tensor)
    return rows


def added_to_rows(in_tensor: Array, indices_tensor: Array, value_tensor: Array) -> Array:
    """Each row of values is added to the row that its index names."""
    result = wide(in_tensor).copy()
    np.add.at(result, indices_tensor[:, 0], wide(value_tensor))
    return result


def gathered_per_core(
    src_buffer: Array,
    index: Array,
    num_elem_per_idx: int,
    num_valid_indices: int,
    output_shape: tuple[int, ...],
) -> Array:
    """Sixteen partitions share their indices, which are read down the partitions first.

    Every partition takes its own groups of `num_elem_per_idx` elements at these indices.
    """
    result = np.empty((len(src_buffer), num_valid_indices, num_elem_per_idx))
    for partition, groups in enumerate(src_buffer):
        core = partition // 16 * 16
        shared = index[core : core + 16].T.ravel()[:num_valid_indices]
        result[partition] = groups[shared]
    return result.reshape(tuple(output_shape))
