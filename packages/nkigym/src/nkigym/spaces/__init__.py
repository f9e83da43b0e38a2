"""The search spaces: schedules of kernel programs, rewrites of tile programs."""

from nkigym.spaces.kernel_space import LoopSpace
from nkigym.spaces.tile_space import TileSpace

__all__ = [
    "LoopSpace",
    "TileSpace",
]
