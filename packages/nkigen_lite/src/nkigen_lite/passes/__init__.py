"""Rewrites of graphs that need no machine, each checked by executing before and after."""

from nkigen_lite.passes.canonicalize import canonicalize
from nkigen_lite.passes.decompose import decompose
from nkigen_lite.passes.equivalence import check_pass
from nkigen_lite.passes.loop_rolling import map_bodies, rolled
from nkigen_lite.passes.repeated_steps import find_steps, why_unrolled

__all__ = [
    "canonicalize",
    "check_pass",
    "decompose",
    "find_steps",
    "map_bodies",
    "rolled",
    "why_unrolled",
]
