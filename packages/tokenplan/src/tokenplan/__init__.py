"""Orderings that a kernel needs: proved, explained, scheduled, checked."""

TYPE_CHECKING = False  # of `typing`; under `python -m`, an import here may find a user's file
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

_MODULES = {
    "analysis": "analyse",
    "graph.token_graph": "Edge Join MayAlias Parallel Pipeline TokenGraph Witness",
    "kernel.model": "Access Buffer Kernel Loop Mode Op",
    "kernel.program_reader": "read",
}


def __getattr__(name: str) -> object:
    from neuroncore.lazy_names import lazy_names

    return lazy_names(__name__, _MODULES)[0](name)


def __dir__() -> list[str]:
    return sorted(__all__)
