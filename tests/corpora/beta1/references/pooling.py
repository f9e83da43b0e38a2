"""Pooling windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from wide import Array, wide


def average_of_blocks(in_tensor: Array, pool_size: int) -> Array:
    """(C, H, W) → the mean of every pool_size × pool_size block, none overlapping."""
    windows = sliding_window_view(wide(in_tensor), (pool_size, pool_size), axis=(1, 2))
    return windows[:, ::pool_size, ::pool_size].mean(axis=(3, 4))


def maximum_of_windows(in_tensor: Array, pool_size: int) -> Array:
    """(H, W) → the maximum of the window that starts at each place where one fits."""
    return sliding_window_view(in_tensor, (pool_size, pool_size)).max(axis=(2, 3))


def scatter_to_maxima(operand_tensor: Array, source_tensor: Array) -> Array:
    """Each source value is added where its 3 × 3 window (stride 2, padding 1) has its maximum.

    Of equal maxima the first in row-major order counts.
    """
    low = np.finfo(operand_tensor.dtype).min
    padded = np.pad(operand_tensor, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=low)
    out = np.zeros(padded.shape)
    for n, c, i, j in np.ndindex(source_tensor.shape):
        window = padded[n, c, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3]
        row, column = divmod(int(window.argmax()), 3)
        out[n, c, 2 * i + row, 2 * j + column] += source_tensor[n, c, i, j]
    return out[:, :, 1:-1, 1:-1]


def resize_nearest(data_tensor: Array, out_shape: Sequence[int]) -> Array:
    """(batch, height, width, channel): the source pixel at floor(index · in / out) of each axis."""
    rows, columns = (
        np.arange(new) * np.float32(old / new) // 1
        for old, new in zip(data_tensor.shape[1:3], out_shape[1:3], strict=True)
    )
    return data_tensor[:, rows.astype(int)][:, :, columns.astype(int)]


def adaptive_average(in_tensor: Array, output_size: Sequence[int]) -> Array:
    """The means of out-many windows per axis: from floor(i·in/out) up to ceil((i+1)·in/out)."""
    height, width = in_tensor.shape[2:]
    out = np.empty((*in_tensor.shape[:2], *output_size))
    for i, j in np.ndindex(*output_size):
        rows, columns = _window(i, height, output_size[0]), _window(j, width, output_size[1])
        out[:, :, i, j] = wide(in_tensor)[:, :, rows, columns].mean(axis=(2, 3))
    return out


def _window(index: int, size: int, count: int) -> slice:
    return slice(index * size // count, -(-(index + 1) * size // count))
