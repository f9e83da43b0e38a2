"""NumPy functions as NKI kernels: traced, fused, checked, written, run."""

from neuroncore.lazy_names import TYPE_CHECKING, lazy_names

if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "": "numpy_extras",
        "backend": "BACKEND",
        "compiler.compile": "Compiled compile",
        "frontend": "erf gelu rsqrt scan sigmoid silu topk trace",
        "ir": "Graph parse_graph print_graph",
        "tensors.spec": "Spec as_spec narrow",
    },
)
