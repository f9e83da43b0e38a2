"""Tile programs: straight lines of loads, calls and stores of whole tiles."""

from nkigym.tiles.program import TileProgram
from nkigym.tiles.roots import (
    TilingError,
    matmul_root,
    repeated_add_root,
    rmsnorm_matmul_root,
    sum_and_product_root,
    tensor_add_root,
)
from nkigym.tiles.text import parse_tiles, print_tiles

__all__ = [
    "TileProgram",
    "TilingError",
    "matmul_root",
    "parse_tiles",
    "print_tiles",
    "repeated_add_root",
    "rmsnorm_matmul_root",
    "sum_and_product_root",
    "tensor_add_root",
]
