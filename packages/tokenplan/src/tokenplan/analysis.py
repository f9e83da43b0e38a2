"""From a kernel to its token graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from time import perf_counter, process_time

from neuroncore.machine.garbage_collection import no_collection
from neuroncore.program import Program, check
from neuroncore.program.verification.findings import need_program
from tokenplan.elision.claims import ClaimError, check_claims, joins, with_aliases
from tokenplan.elision.elide import elide
from tokenplan.graph.diagnostics import Diagnostic
from tokenplan.graph.token_graph import REMOVED, Claim, Edge, MayAlias, TokenGraph
from tokenplan.graph.wording import plural
from tokenplan.kernel.model import Kernel
from tokenplan.kernel.program_reader import read
from tokenplan.reduction.transitive_reduction import reduce
from tokenplan.rules import BUDGET, integer_sets

MOST_STEPS = 2**60
"""A budget that is none; the library counts in 64 bits."""


def analyse(
    program: Program | Kernel,
    claims: Iterable[Claim] = (),
    budget: int = BUDGET,
    verified: bool = False,
    may_alias: Iterable[tuple[str, str]] = (),
) -> TokenGraph:
    """Which operations of `program` must wait for which, each edge with its proof or witness.

    claims: Parallel and Pipeline are checked, and diagnostics E2 and E3 say where they fail; Join
    adds an order. budget: operations that the exact search may take per pair of accesses; a pair
    that needs more is kept in order. verified: `neuroncore.program.check` has passed already.
    may_alias: pairs of tensors that may share bytes, whose accesses all stay in order; without it
    two parameters are taken to be two tensors, and W2 says so.

    Raises ProgramError for a program that breaks rules of the machine, LaunchError for what is not
    a program, ClaimError for a claim of a loop, operation or tensor that is not there.
    """
    if not isinstance(program, Kernel):
        need_program(program)
    if budget < 1:
        raise ClaimError("a search needs a budget", expected="1 step or more", got=str(budget))
    with no_collection():
        clock = process_time if isinstance(program, Program) else perf_counter
        began = clock()
        if isinstance(program, Program) and not verified:
            check(program)
        checked = clock() - began
        requested = (*claims, *(MayAlias(pair) for pair in may_alias))
        graph = _analyse(program, tuple(dict.fromkeys(requested)), min(budget, MOST_STEPS), clock)
    return replace(graph, seconds={"check": checked, **graph.seconds})


def _analyse(
    program: Program | Kernel, claims: tuple[Claim, ...], budget: int, clock: Callable[[], float]
) -> TokenGraph:
    """`clock`: of the seconds; reading CPU time takes milliseconds on some machines."""
    began = clock()
    kernel = program if isinstance(program, Kernel) else read(program, verified=True)
    read_at = clock()
    elision = with_aliases(kernel, elide(kernel, budget), claims)
    edges = (*elision.edges, *joins(kernel, claims))
    found = check_claims(kernel, claims, budget)
    elided_at = clock()
    edges = reduce(kernel, edges)
    found += remarks(kernel, edges, elision.assumes)
    seconds = {
        "effects": read_at - began,
        "elision": elided_at - read_at,
        "reduction": clock() - elided_at,
    }
    return TokenGraph(kernel, edges, claims, elision.assumes, tuple(found), elision.counts, seconds)


# -- remarks ---------------------------------------------------------------------------------------


_CODES = (
    ("parameters ", "W2"),
    ("tensors in ", "W2"),
    ("an index of ", "W3"),
    ("it is allowed that ", "W6"),
)
"""How an assumption begins, and its code."""


def remarks(kernel: Kernel, edges: Iterable[Edge], assumes: Iterable[str]) -> list[Diagnostic]:
    """W1 for each opaque access, W2, W3 and W6 for what proofs rest on, W7 for missing ones."""
    needed = [edge for edge in edges if edge.status != REMOVED]
    found = list(_opaque(kernel, needed))
    found += listed(assumes)
    if unknown := sum(edge.rule == integer_sets.BUDGET for edge in needed):
        text = (
            f"{plural(unknown, 'order')} kept because the exact search for a conflict ran out of "
            "its budget"
        )
        found.append(Diagnostic("W7", text))
    return found


def listed(assumes: Iterable[str]) -> Iterator[Diagnostic]:
    """The diagnostics of assumptions."""
    for text in assumes:
        yield from (Diagnostic(code, text) for start, code in _CODES if text.startswith(start))


def _opaque(kernel: Kernel, needed: list[Edge]) -> Iterator[Diagnostic]:
    for op in kernel.ops():
        for name, why in {a.buffer: a.opaque for a in op.accesses if a.opaque}.items():
            count = sum(e.buffer == name and op.id in (e.source, e.sink) for e in needed)
            where = f"{op.place.file}:{op.place.line}" if op.place else ""
            text = (
                f"which bytes of {name} {op.id} accesses is not known ({why}); it is taken to "
                f"access all that it could, which keeps {plural(count, 'order')}"
            )
            yield Diagnostic("W1", text, where)
