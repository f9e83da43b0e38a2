"""Layouts: which address each index of a tile has; strides, and XOR of address bits."""

from neuroncore.layout.descriptor import Layout
from neuroncore.layout.swizzle import Swizzle
from neuroncore.layout.tile_views import Flip, TileView, ViewDim, lower
from neuroncore.layout.verdict import Mixture, Verdict

__all__ = ["Flip", "Layout", "Mixture", "Swizzle", "TileView", "Verdict", "ViewDim", "lower"]
