"""Certified search over schedules of NKI kernels."""

from neuroncore.lazy_names import TYPE_CHECKING, lazy_names

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "tile_rewrites": "Enumeration RewriteGraph exhaust rewrite_graph",
        "tile_rewrites.graph": "certificate",
        "tiles": "TileProgram matmul_root",
        "tuning": "Tuned tune",
    },
)
