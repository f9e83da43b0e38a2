"""The programs that steps reach from a root, each step certified."""

from nkigym.tile_rewrites.component import TileRewrite
from nkigym.tile_rewrites.enumeration import Enumeration, exhaust
from nkigym.tile_rewrites.graph import Node, RewriteGraph
from nkigym.tile_rewrites.isomorphism import canonical_count
from nkigym.tile_rewrites.kinds import KNOWN, TRANSFORMS
from nkigym.tile_rewrites.partition import rewrite_graph
from nkigym.tile_rewrites.random_walk import Walk, Walked, walk
from nkigym.tile_rewrites.schedules import Entry, SharedLoads, descend, replay, share_all_loads
from nkigym.tile_rewrites.value_numbering import CertificateError

__all__ = [
    "KNOWN",
    "TRANSFORMS",
    "CertificateError",
    "Entry",
    "Enumeration",
    "Node",
    "RewriteGraph",
    "SharedLoads",
    "TileRewrite",
    "Walk",
    "Walked",
    "canonical_count",
    "descend",
    "exhaust",
    "replay",
    "rewrite_graph",
    "share_all_loads",
    "walk",
]
