"""Orderings that a kernel needs: proved, explained, scheduled, checked."""

from neuroncore.lazy_names import TYPE_CHECKING, lazy_names

if TYPE_CHECKING:
    from tokenplan.analysis import analyse
    from tokenplan.graph.token_graph import (
        Edge,
        Join,
        MayAlias,
        Parallel,
        Pipeline,
        TokenGraph,
        Witness,
    )
    from tokenplan.kernel.model import Access, Buffer, Kernel, Loop, Mode, Op
    from tokenplan.kernel.program_reader import read

__all__ = [
    "Access",
    "Buffer",
    "Edge",
    "Join",
    "Kernel",
    "Loop",
    "MayAlias",
    "Mode",
    "Op",
    "Parallel",
    "Pipeline",
    "TokenGraph",
    "Witness",
    "analyse",
    "read",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "analysis": "analyse",
        "graph.token_graph": "Edge Join MayAlias Parallel Pipeline TokenGraph Witness",
        "kernel.model": "Access Buffer Kernel Loop Mode Op",
        "kernel.program_reader": "read",
    },
)
