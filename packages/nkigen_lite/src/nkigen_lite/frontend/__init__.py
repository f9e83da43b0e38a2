"""NumPy programs traced into graphs."""

from nkigen_lite.frontend.arrays.array import TracedArray
from nkigen_lite.frontend.functions import erf, gelu, rsqrt, scan, sigmoid, silu, topk
from nkigen_lite.frontend.trace import trace

__all__ = ["TracedArray", "erf", "gelu", "rsqrt", "scan", "sigmoid", "silu", "topk", "trace"]
