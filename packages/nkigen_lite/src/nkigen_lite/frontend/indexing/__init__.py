"""Subscripts of traced arrays: views, gathers, scatters and masks."""

from nkigen_lite.frontend.indexing import axis_indexing, gather, subscripts

__all__ = ["axis_indexing", "gather", "subscripts"]
