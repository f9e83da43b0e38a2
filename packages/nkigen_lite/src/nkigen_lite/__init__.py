"""NumPy functions as NKI kernels: traced, fused, checked, written, run."""

TYPE_CHECKING = False  # of `typing`; under `python -m`, an import here may find a user's file
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

_MODULES = {
    "": "numpy_extras",
    "backend": "BACKEND",
    "compiler.compile": "Compiled compile",
    "frontend": "erf gelu rsqrt scan sigmoid silu topk trace",
    "ir": "Graph parse_graph print_graph",
    "tensors.spec": "Spec as_spec narrow",
}


def __getattr__(name: str) -> object:
    from neuroncore.lazy_names import lazy_names

    return lazy_names(__name__, _MODULES)[0](name)


def __dir__() -> list[str]:
    return sorted(__all__)
