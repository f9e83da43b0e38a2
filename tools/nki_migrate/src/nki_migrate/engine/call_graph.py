"""The functions that a kernel reaches: it is complete and runnable only if all of them are."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from nki_migrate.engine.results import FileResult, KernelReport
from nki_migrate.facts.observed import FileFacts
from nki_migrate.index import FileIndex, Function, walk
from nki_migrate.index.names import shorten
from nki_migrate.index.project import file_of

if TYPE_CHECKING:
    from nki_migrate.facts.values import Value

Place = tuple[str, str]  # path of a file, name of a device function in it

_LANGUAGE = {"np", "nl", "nisa", "nki", "ncc"}


def named_functions(index: FileIndex, function: Function) -> tuple[str, ...]:
    """The names in a function: device functions of its file, and import paths of anything else."""
    found: set[str] = set()
    for node in walk(function.node):
        if not isinstance(node, ast.Name | ast.Attribute):
            continue
        path = index.path(node)
        if path is not None and shorten(path).partition(".")[0] not in _LANGUAGE:
            found.add(path)
        elif path is None:
            name = node.id if isinstance(node, ast.Name) else node.attr
            found |= {name} & index.functions.keys()
    return tuple(sorted(found - {function.name}))


def reachable_functions(results: Iterable[FileResult], start: Place) -> list[Place]:
    """A kernel and every device function of these files that it reaches."""
    return _reached(_graph(results), start)


def with_reachability(results: Sequence[FileResult]) -> list[FileResult]:
    """The results, in which a kernel that reaches an incomplete function is incomplete."""
    if all(k.complete for result in results for k in result.kernels):
        return list(results)
    graph = _graph(results)
    reports = {(r.path, k.name): k for r in results for k in r.kernels}
    return [
        replace(r, kernels=tuple(_judged(k, (r.path, k.name), graph, reports) for k in r.kernels))
        for r in results
    ]


def _judged(
    kernel: KernelReport,
    place: Place,
    graph: Mapping[Place, Sequence[Place]],
    reports: Mapping[Place, KernelReport],
) -> KernelReport:
    below = [p for p in _reached(graph, place) if p != place and not reports[p].complete]
    return replace(
        kernel,
        complete=kernel.complete and not below,
        runnable=kernel.runnable and all(reports[p].runnable for p in below),
        through=tuple(name for _, name in below) if kernel.complete else (),
    )


def _graph(results: Iterable[FileResult]) -> dict[Place, list[Place]]:
    """Functions that each function names; the first file of a name wins (see Project)."""
    own = {(r.path, k.name): k for r in results for k in r.kernels}
    paths = dict.fromkeys(path for path, _ in own)
    return {
        place: [p for name in kernel.reaches if (p := _place(place[0], name, paths)) in own]
        for place, kernel in own.items()
    }


def _place(path: str, name: str, paths: Collection[str]) -> Place:
    module, dot, function = name.rpartition(".")
    if not dot:
        return path, name
    return file_of(module, paths) or "", function


def _reached(graph: Mapping[Place, Sequence[Place]], start: Place) -> list[Place]:
    found = [start]
    for place in found:
        found += [p for p in graph.get(place, ()) if p not in found]
    return found


def callers_first(index: FileIndex, functions: Iterable[Function]) -> list[Function]:
    """The functions of a file, each after its callers (in a cycle, in source order)."""
    waiting = sorted(functions, key=lambda f: (f.called_from_device, f.node.lineno))
    callees = {f.name: set(index.callees(f.name)) - {f.name} for f in waiting}
    ordered = []
    while waiting:
        called = set().union(*(callees[f.name] for f in waiting))
        free = next((f for f in waiting if f.name not in called), waiting[0])
        waiting.remove(free)
        ordered.append(free)
    return ordered


def receives_tile(
    index: FileIndex,
    function: Function,
    calls: Sequence[Sequence[Value | None]],
    observed: FileFacts | None,
) -> bool:
    """Whether a function is handed something on chip, by one of the calls or in a run."""
    from nki_migrate.facts.values import Tensor  # for files with kernels: 30 ms of CPU time

    if any(isinstance(v, Tensor) for call in calls for v in call):
        return True
    if observed is None:
        return False
    names = [n for n in ast.walk(function.node) if isinstance(n, ast.Name | ast.Attribute)]
    seen = [observed.at(index.source.span(n)) for n in names]
    return any(s is not None and s.is_tensor and s.memory in {"sbuf", "psum"} for s in seen)
