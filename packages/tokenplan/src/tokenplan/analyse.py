"""From a kernel to its token graph."""

from __future__ import annotations

from collections.abc import Iterable
from time import process_time

from neuroncore.program import Program
from tokenplan.elide import elide
from tokenplan.graph import Claim, TokenGraph
from tokenplan.model import Kernel
from tokenplan.read import read
from tokenplan.reduce import reduce
from tokenplan.rules import BUDGET


def analyse(
    program: Program | Kernel, claims: Iterable[Claim] = (), budget: int = BUDGET
) -> TokenGraph:
    """Which operations of `program` must wait for which, each edge with its proof or witness.

    budget: operations that the exact search may take per pair of accesses; a pair that needs more
    is kept in order. Raises ProgramError for a program that breaks rules of the machine.
    """
    began = process_time()
    kernel = program if isinstance(program, Kernel) else read(program)
    read_at = process_time()
    elision = elide(kernel, budget)
    elided_at = process_time()
    edges = reduce(kernel, elision.edges)
    seconds = {
        "effects": read_at - began,
        "elision": elided_at - read_at,
        "reduction": process_time() - elided_at,
    }
    return TokenGraph(kernel, edges, tuple(claims), elision.assumes, (), elision.counts, seconds)
