"""Certified search over schedules of NKI kernels."""

from nkigym.tile_rewrites import Enumeration, RewriteGraph, exhaust, rewrite_graph
from nkigym.tile_rewrites.graph import certificate
from nkigym.tiles import TileProgram, matmul_root
from nkigym.tuning import Tuned, tune

__all__ = [
    "Enumeration",
    "RewriteGraph",
    "TileProgram",
    "Tuned",
    "certificate",
    "exhaust",
    "matmul_root",
    "rewrite_graph",
    "tune",
]
