"""Certified search over schedules of NKI kernels."""

TYPE_CHECKING = False  # of `typing`; under `python -m`, an import here may find a user's file
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

_MODULES = {
    "tile_rewrites": "Enumeration RewriteGraph exhaust rewrite_graph",
    "tile_rewrites.graph": "certificate",
    "tiles": "TileProgram matmul_root",
    "tuning": "Tuned tune",
}


def __getattr__(name: str) -> object:
    from neuroncore.lazy_names import lazy_names

    return lazy_names(__name__, _MODULES)[0](name)


def __dir__() -> list[str]:
    return sorted(__all__)
