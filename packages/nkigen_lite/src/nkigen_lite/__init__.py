"""NumPy functions as NKI kernels: traced, fused, checked, written, run."""

from nkigen_lite import numpy_extras
from nkigen_lite.backend import BACKEND
from nkigen_lite.compiler.compile import Compiled, compile
from nkigen_lite.frontend import erf, gelu, rsqrt, scan, sigmoid, silu, topk, trace
from nkigen_lite.ir import Graph, parse_graph, print_graph
from nkigen_lite.tensors.spec import Spec, as_spec, narrow

__all__ = [
    "BACKEND",
    "Compiled",
    "Graph",
    "Spec",
    "as_spec",
    "compile",
    "erf",
    "gelu",
    "narrow",
    "numpy_extras",
    "parse_graph",
    "print_graph",
    "rsqrt",
    "scan",
    "sigmoid",
    "silu",
    "topk",
    "trace",
]
