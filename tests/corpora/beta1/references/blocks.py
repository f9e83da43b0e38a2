"""Maxima of square blocks that do not overlap."""

from __future__ import annotations

from wide import Array


def maximum_of_blocks(in_tensor: Array, pool_size: int) -> Array:
    """(C, H, W) → (C, H / size, W / size), the maximum of each block."""
    channels, height, width = in_tensor.shape
    rows, columns = height // pool_size, width // pool_size
    blocks = in_tensor.reshape(channels, rows, pool_size, columns, pool_size)
    return blocks.max(axis=(2, 4))


def maximum_of_square_blocks(in_tensor: Array, sz_pool: int) -> Array:
    """`maximum_of_blocks` with the size under this name."""
    return maximum_of_blocks(in_tensor, sz_pool)
