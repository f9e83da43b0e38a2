"""Rewrites of graphs that need no machine, each checked by executing before and after."""

from nkigen_lite.passes.canonicalize import canonicalize
from nkigen_lite.passes.decompose import decompose
from nkigen_lite.passes.equivalence import check_pass

__all__ = ["canonicalize", "check_pass", "decompose"]
