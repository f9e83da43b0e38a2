"""Certified search over schedules of NKI kernels."""

from nkigym.certify import certificate
from nkigym.space import Found, Space, exhaust, space_of
from nkigym.tiles import TileProgram, matmul_root
from nkigym.tuning import Tuned, tune

__all__ = [
    "Found",
    "Space",
    "TileProgram",
    "Tuned",
    "certificate",
    "exhaust",
    "matmul_root",
    "space_of",
    "tune",
]
