"""From tile programs to kernel programs."""

from nkigym.lower.lowering import LoweringError, lower

__all__ = ["LoweringError", "lower"]
