"""Layouts: which address each index of a tile has; strides, and XOR of address bits."""

from neuroncore.layout.descriptor import Layout
from neuroncore.layout.swizzle import Swizzle
from neuroncore.layout.verdict import Mixture, Verdict

__all__ = ["Layout", "Mixture", "Swizzle", "Verdict"]
