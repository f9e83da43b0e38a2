"""Helpers of a file: behind whom they come, and which of them are handed tiles."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence

from nki_migrate.facts.observed import FileFacts
from nki_migrate.facts.values import Tensor, Value
from nki_migrate.index import FileIndex, Function

__all__ = ["callers_first", "gets_a_tile"]


def callers_first(index: FileIndex, functions: Iterable[Function]) -> list[Function]:
    """The functions of a file, each behind those that call it (in a cycle, as they stand)."""
    waiting = sorted(functions, key=lambda f: (f.called_from_device, f.node.lineno))
    callees = {f.name: set(index.callees(f.name)) - {f.name} for f in waiting}
    ordered = []
    while waiting:
        called = set().union(*(callees[f.name] for f in waiting))
        free = next((f for f in waiting if f.name not in called), waiting[0])
        waiting.remove(free)
        ordered.append(free)
    return ordered


def gets_a_tile(
    index: FileIndex,
    function: Function,
    calls: Mapping[str, Sequence[Sequence[Value]]],
    observed: FileFacts | None,
) -> bool:
    """Whether a function is handed something on chip, by a call in this file or in a run."""
    if any(isinstance(v, Tensor) for call in calls.get(function.name, ()) for v in call):
        return True
    if observed is None:
        return False
    names = [n for n in ast.walk(function.node) if isinstance(n, ast.Name)]
    seen = [observed.at(index.source.span(n)) for n in names]
    return any(s is not None and s.is_tensor and s.memory in {"sbuf", "psum"} for s in seen)
