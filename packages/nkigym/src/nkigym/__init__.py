"""Certified search over schedules of NKI kernels."""

from nkigym.certify import certificate
from nkigym.space import Found, Space, exhaust, space_of
from nkigym.tiles import TileProgram, matmul_root

__all__ = ["Found", "Space", "TileProgram", "certificate", "exhaust", "matmul_root", "space_of"]
