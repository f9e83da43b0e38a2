"""Which orderings a kernel needs: proved, explained, scheduled, checked."""

from tokenplan.analyse import analyse
from tokenplan.graph import Edge, TokenGraph, Witness
from tokenplan.model import Access, Buffer, Kernel, Loop, Mode, Op
from tokenplan.read import read

__all__ = [
    "Access",
    "Buffer",
    "Edge",
    "Kernel",
    "Loop",
    "Mode",
    "Op",
    "TokenGraph",
    "Witness",
    "analyse",
    "read",
]
