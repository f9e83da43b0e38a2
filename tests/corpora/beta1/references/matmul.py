"""Matrix products, in float64."""

from __future__ import annotations

from wide import Array, wide


def product_of_transposed(lhsT: Array, rhs: Array) -> Array:  # noqa: N803
    """lhsT transposed, times rhs."""
    return wide(lhsT).T @ wide(rhs)


def product_of_blocks(A_DRAM: Array, B_DRAM: Array, **_blocks: int) -> Array:  # noqa: N803
    """A transposed, times B, however many tiles are a block."""
    return product_of_transposed(A_DRAM, B_DRAM)


def double_row_product(
    lhs: Array,
    rhs_quantized: Array,
    rhs_scale: Array,
    TILES_IN_BLOCK_N: int,  # noqa: N803
) -> Array:
    """lhs times the matrix that `rhs_quantized` holds with two rows of tiles side by side.

    A K × N matrix of float8 is stored as K/2 × 2N: 128 rows of every other 128-row tile beside
    the rows of the tile before it, 512·TILES columns of each in turn.
    """
    half, width = rhs_quantized.shape[0] // 128, rhs_quantized.shape[1] // 2
    columns = 512
    tiles = wide(rhs_quantized).reshape(half, 128, width // columns, 2, columns)
    rhs = tiles.transpose(0, 3, 1, 2, 4).reshape(half * 2 * 128, width)
    return (wide(lhs) @ rhs) * wide(rhs_scale)[0]
