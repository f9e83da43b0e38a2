"""What a person should know beside the edges: opaque accesses and assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tokenplan.graph.diagnostics import Diagnostic
from tokenplan.graph.token_graph import REMOVED, Edge
from tokenplan.graph.wording import plural
from tokenplan.kernel.model import Kernel
from tokenplan.rules import integer_sets

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
    for text in assumes:
        found += [Diagnostic(code, text) for start, code in _CODES if text.startswith(start)]
    if unknown := sum(edge.rule == integer_sets.BUDGET for edge in needed):
        text = (
            f"{plural(unknown, 'order')} kept because the exact search for a conflict ran out of "
            "its budget"
        )
        found.append(Diagnostic("W7", text))
    return found


def _opaque(kernel: Kernel, needed: list[Edge]) -> Iterator[Diagnostic]:
    for op in kernel.ops():
        for name, why in {a.buffer: a.opaque for a in op.accesses if a.opaque}.items():
            count = sum(e.buffer == name and op.id in (e.source, e.sink) for e in needed)
            where = f"{op.place.file}:{op.place.line}" if op.place else ""
            text = (
                f"which bytes of {name} {op.id} touches is not known ({why}); it is taken to touch "
                f"all that it could, which keeps {plural(count, 'order')}"
            )
            yield Diagnostic("W1", text, where)
