"""Layouts: which address each index of a tile has; strides, and XOR of address bits."""

from tokenplan.layout.descriptor import Layout
from tokenplan.layout.swizzle import Swizzle
from tokenplan.layout.tile_views import Flip, TileView, ViewDim, lower
from tokenplan.layout.verdict import Mixture, Verdict

__all__ = ["Flip", "Layout", "Mixture", "Swizzle", "TileView", "Verdict", "ViewDim", "lower"]
