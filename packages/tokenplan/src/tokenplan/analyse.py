"""From a kernel to its token graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from time import process_time

from neuroncore.collection import no_collection
from neuroncore.program import Program, check
from tokenplan import claims as checks
from tokenplan.elide import elide
from tokenplan.graph import Claim, TokenGraph
from tokenplan.model import Kernel
from tokenplan.read import read
from tokenplan.reduce import reduce
from tokenplan.remarks import remarks
from tokenplan.rules import BUDGET


def analyse(
    program: Program | Kernel,
    claims: Iterable[Claim] = (),
    budget: int = BUDGET,
    verified: bool = False,
) -> TokenGraph:
    """Which operations of `program` must wait for which, each edge with its proof or witness.

    claims: Parallel and Pipeline are checked, and diagnostics E2 and E3 say where they fail; Join
    adds an order. budget: operations that the exact search may take per pair of accesses; a pair
    that needs more is kept in order. verified: `neuroncore.program.check` has passed already.

    Raises ProgramError for a program that breaks rules of the machine, ClaimError for a claim of a
    loop or operation that is not there.
    """
    with no_collection():
        began = process_time()
        if isinstance(program, Program) and not verified:
            check(program)
        checked = process_time() - began
        graph = _analyse(program, tuple(claims), budget)
    return replace(graph, seconds={"check": checked, **graph.seconds})


def _analyse(program: Program | Kernel, claims: tuple[Claim, ...], budget: int) -> TokenGraph:
    began = process_time()
    kernel = program if isinstance(program, Kernel) else read(program, verified=True)
    read_at = process_time()
    elision = elide(kernel, budget)
    edges = (*elision.edges, *checks.joins(kernel, claims))
    found = checks.check_claims(kernel, claims, budget)
    elided_at = process_time()
    edges = reduce(kernel, edges)
    found += remarks(kernel, edges, elision.assumes)
    seconds = {
        "effects": read_at - began,
        "elision": elided_at - read_at,
        "reduction": process_time() - elided_at,
    }
    return TokenGraph(kernel, edges, claims, elision.assumes, tuple(found), elision.counts, seconds)
