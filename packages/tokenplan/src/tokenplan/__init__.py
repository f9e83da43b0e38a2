"""Orderings that a kernel needs: proved, explained, scheduled, checked."""

from tokenplan.analyse import analyse
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
