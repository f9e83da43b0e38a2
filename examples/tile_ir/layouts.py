"""Kernels whose operands are in other layouts than rows, each with its NumPy reference.

A layout says where memory has each element; the kernels do not change with it. Which view a tile
gets, and what a pointer tile costs instead, is decided by the layout alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log2
from pathlib import Path
from runpy import run_path

import numpy as np

from neuroncore.layout import Layout, Swizzle
from tokenplan.tile_ir import TileKernel

KERNELS = run_path(str(Path(__file__).with_name("kernels.py")), run_name="tile_ir_kernels")

# -- layouts of an array of rows and columns, for tiles of some extents ----------------------------


def rows(m, n, tile):
    return Layout.of((m, n))


def columns(m, n, tile):
    """The transpose of an array in rows."""
    return Layout.of((n, m)).permute((1, 0))


def wide_rows(m, n, tile):
    """Part of an array with eight times the columns, such as one of eight heads."""
    return Layout.of((m, n), (8 * n, 1))


def odd_rows(m, n, tile):
    """Rows that start at multiples of 4 elements alone."""
    return Layout.of((m, n), (n + 4, 1))


def blocks(m, n, tile):
    """Each tile contiguous in memory."""
    down, along = tile
    size = down * along
    return Layout(
        (((m // down, n // along * size), (down, along)), ((n // along, size), (along, 1)))
    )


def column_blocks(m, n, tile):
    """The transpose of an array in blocks."""
    return blocks(n, m, tile[::-1]).permute((1, 0))


def heads(m, n, tile):
    """Reshape of the transpose (heads, rows, width) of an array (rows, heads, width): 4 heads."""
    return Layout((((4, n), (m // 4, 4 * n)), ((n, 1),)))


def heads_inside(m, n, tile):
    """The other way: columns are 4 heads, each an array of its own."""
    return Layout((((m, n // 4),), ((4, m * n // 4), (n // 4, 1))))


def crossing(m, n, tile):
    """Blocks of 48 rows, which tiles of 64 rows cross."""
    return Layout((((m // 48, 64 * n), (48, n)), ((n, 1),)))


def _xor(m, n, base, source, bits):
    return Layout.of((m, n), swizzle=Swizzle.xor(bits, base, source - base))


def tiles_xor(m, n, tile):
    """The index of a tile of columns is XOR that of its rows."""
    down, along = (int(log2(extent)) for extent in tile)
    wide = int(log2(n))
    return _xor(m, n, along, wide + down, min(3, wide - along, int(log2(m)) - down))


def rows_xor(m, n, tile):
    """Bits 0 to 2 of the row are XOR bits 3 to 5."""
    wide = int(log2(n))
    return _xor(m, n, wide, wide + 3, 3)


def rows_xor_tiles(m, n, tile):
    """Bits 0 and 1 of the row inside a tile are XOR the index of the tile of rows."""
    wide, down = int(log2(n)), int(log2(tile[0]))
    return _xor(m, n, wide, wide + down, min(2, int(log2(m)) - down))


def chunks_xor(m, n, tile):
    """Chunks of 8 elements in a row are XOR the row, as in shared memory without bank conflicts."""
    return _xor(m, n, 3, int(log2(n)), 3)


# -- kernels ---------------------------------------------------------------------------------------


def relayout(layout, tile=(64, 64), dtype="f32", back=False):
    """b = exp2(a) in rows, from a in a layout; or the other way."""
    kernel = TileKernel("relayout")
    (m, n), dense = layout.shape, Layout.of(layout.shape)
    a = kernel.array("a", dense if back else layout, dtype)
    b = kernel.array("b", layout if back else dense, dtype)
    j = kernel.grid("j", n // tile[1])
    with kernel.loop("i", m // tile[0]) as i:
        kernel.store(b, (i, j), kernel.compute("exp2", kernel.load(a, (i, j), tile)))
    return kernel


def scatter(layout, tile=(64, 64), dtype="f32"):
    """b in a layout = exp2(a) in rows."""
    return relayout(layout, tile, dtype, back=True)


def gemm(layout, tile=(128, 64), dtype="f32"):
    """c = a @ b with a in the layout."""
    m, k = layout.shape
    return KERNELS["gemm"](m, k, k, (tile[0], 128, tile[1]), dtype, layout)


def attention(layout, tile=(64, 64), dtype="f32"):
    """o = softmax(q kᵀ) v with k in the layout."""
    keys, width = layout.shape
    return KERNELS["attention"](128, keys, width, 64, tile[0], dtype, layout)


def exp2_reference(a, b):
    return {"b": np.exp2(a)}


@dataclass(frozen=True)
class LayoutKernel:
    """A kernel of a layout, its tile, its sizes when tested and when compiled, and layouts."""

    make: Callable[..., TileKernel]
    reference: Callable[..., dict[str, np.ndarray]]
    tile: tuple[int, int]
    small: tuple[int, int]
    large: tuple[int, int]
    layouts: tuple[Callable[..., Layout], ...]

    def cases(self, is_large: bool = False, dtype: str = "f32") -> Iterator[tuple[str, TileKernel]]:
        """The kernel of each layout, by the name of the layout."""
        m, n = self.large if is_large else self.small
        for made in self.layouts:
            height = m // 64 * 48 if made is crossing else m
            yield made.__name__, self.make(made(height, n, self.tile), self.tile, dtype)


LAYOUT_KERNELS = {
    "gemm": LayoutKernel(
        gemm, KERNELS["gemm_reference"], (128, 64), (256, 256), (1024, 1024),
        (rows, blocks, tiles_xor, rows_xor, chunks_xor),
    ),
    "transpose and reshape": LayoutKernel(
        relayout, exp2_reference, (64, 64), (256, 256), (1024, 1024),
        (rows, columns, column_blocks, heads, heads_inside, crossing),
    ),
    "attention": LayoutKernel(
        attention, KERNELS["attention_reference"], (64, 64), (256, 64), (1024, 64),
        (rows, columns, wide_rows, odd_rows, chunks_xor),
    ),
    "gather": LayoutKernel(
        relayout, exp2_reference, (64, 64), (256, 128), (1024, 128),
        (rows, rows_xor, rows_xor_tiles, tiles_xor, chunks_xor),
    ),
    "scatter": LayoutKernel(
        scatter, exp2_reference, (64, 64), (256, 128), (1024, 128),
        (rows, rows_xor, rows_xor_tiles, tiles_xor, chunks_xor),
    ),
}  # fmt: skip
