"""The tensor operations: one record each, with everything that passes need to know of it."""

from nkigen_lite.ops.record import Attr, Kind, Meaning, Op
from nkigen_lite.ops.table import OPS

__all__ = ["OPS", "Attr", "Kind", "Meaning", "Op"]
