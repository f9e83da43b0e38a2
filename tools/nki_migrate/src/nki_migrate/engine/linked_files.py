"""The device functions of a file, with what calls say about them, in this file and in others.

What a helper is called with, and what it returns, decides what its operands are: both are known
for the files of a run that call each other's device functions.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from nki_migrate.comments.todos import has_open_mark
from nki_migrate.engine.call_graph import Place, callers_first, receives_tile
from nki_migrate.engine.file_state import FileState
from nki_migrate.engine.version_detection import detect
from nki_migrate.facts.dialects import MIXED
from nki_migrate.facts.values import Value
from nki_migrate.index import FileIndex, Function, Project
from nki_migrate.index.project import module_of
from nki_migrate.rewriting import RewrittenFunction, rewrite_function
from nki_migrate.rewriting.context.context import Helper, Inputs
from nki_migrate.rewriting.context.scope import Passed
from nki_migrate.rewriting.functions.launch_grid import Launches
from nki_migrate.rules import rewriting_rules
from nki_migrate.settings.request import VERSIONS

_CALL_DEPTH = 4  # of helpers that call helpers, in which what they return is known
_LIMIT = 12  # files that are looked at for one; with more, each is rewritten on its own
_LANGUAGES = {"nki", "neuronxcc", "numpy", "math"}


@dataclass(frozen=True, slots=True)
class _File:
    """A file whose device functions are rewritten."""

    state: FileState
    index: FileIndex


@dataclass(slots=True)
class _Known:
    """Results of functions, and their arguments in each file."""

    returns: dict[Place, Value] = field(default_factory=dict)
    calls: dict[Place, list[tuple[str, Passed]]] = field(default_factory=dict)


def rewritten_functions(state: FileState, index: FileIndex) -> list[RewrittenFunction]:
    """The functions of a file, in the light of all that it is linked to by calls."""
    files = _linked(state, index)
    outside = _outside(state, files) if len(files) > 1 else _Known()
    return list(_rounds({state.path: files[state.path]}, outside).values())


def _outside(state: FileState, files: Mapping[str, _File]) -> _Known:
    """Facts from all linked files together; computed once for all of them."""
    assert state.project is not None
    found = state.project.linked.get(tuple(files))
    if not isinstance(found, _Known):
        found = _Known()
        _rounds(files, found)
        state.project.linked[tuple(files)] = found
    return _Known(
        {place: value for place, value in found.returns.items() if place[0] != state.path},
        {
            place: [call for call in calls if call[0] != state.path]
            for place, calls in found.calls.items()
        },
    )


def _rounds(files: Mapping[str, _File], known: _Known) -> dict[Place, RewrittenFunction]:
    """Again while more is known of what helpers return, which decides what callers hold."""
    calls = known.calls
    for _ in range(_CALL_DEPTH):
        known.calls = {place: list(passed) for place, passed in calls.items()}
        results = _once(files, known)
        before = dict(known.returns)
        for place, result in results.items():
            known.returns.pop(place, None)
            if result.returned:
                known.returns[place] = result.returned
        if known.returns == before or not any(_is_helper(files, p) for p in results):
            break
    return results


def _is_helper(files: Mapping[str, _File], place: Place) -> bool:
    path, name = place
    return files[path].index.functions[name].called_from_device


def launches_of(state: FileState, index: FileIndex, function: Function) -> Launches:
    """Every launch of a function, each with its file."""
    own = tuple((index, x) for x in index.launches if x.kernel == function.name)
    return own + (state.project.launches(index, function.name) if state.project is not None else ())


def _once(files: Mapping[str, _File], known: _Known) -> dict[Place, RewrittenFunction]:
    """Callers before the helpers they call, so that helpers know what they are called with."""
    results = dict[Place, RewrittenFunction]()
    for file in files.values():
        helpers = _helpers(file, known.returns)
        for function in callers_first(file.index, file.index.outermost_functions()):
            place = file.state.path, function.name
            passed = [values for _, values in known.calls.get(place, ())]
            here = _rewritten(file, function, helpers, passed)
            if here is None:
                continue
            for key, calls in here.arguments.items():
                if key in helpers:
                    said = known.calls.setdefault(helpers[key].place, [])
                    said += [(file.state.path, values) for values in calls]
            results[place] = here
    return results


def _rewritten(
    file: _File, function: Function, helpers: Mapping[str, Helper], passed: Sequence[Passed]
) -> RewrittenFunction | None:
    """One function of 0.1; None for one of a later version."""
    state, index = file.state, file.index
    observed = state.request.observed.of_file(state.path, index.source)
    if state.silent.get(function.name) and receives_tile(index, function, passed, observed):
        state.starts[function.name] = "0.1"  # arithmetic on tiles names nothing of NKI
    if state.starts.get(function.name) != "0.1":
        return None
    is_mixed = detect(function, index).name == MIXED
    inputs = Inputs(
        index, function, state.request, rewriting_rules(), state.silenced, observed, is_mixed,
        helpers,
    )  # fmt: skip
    return rewrite_function(inputs, launches_of(state, index, function), passed)


def _helpers(file: _File, returns: Mapping[Place, Value]) -> dict[str, Helper]:
    """The functions that a file may call: its own by name, functions of others by import path."""
    index, project = file.index, file.state.project
    found = {name: (index, function) for name, function in index.functions.items()}
    if project is not None:
        named = ((path, project.kernel(path)) for path in index.foreign_device_calls)
        found |= {path: known for path, known in named if known is not None}
    places = {key: (i.source.path, f.name) for key, (i, f) in found.items()}
    return {
        key: Helper(places[key], function.parameters, returns.get(places[key]))
        for key, (_, function) in found.items()
    }


# -- which files


def _linked(state: FileState, index: FileIndex) -> dict[str, _File]:
    """The file and the files that it is linked to by calls, callers first."""
    found = {state.path: index}
    if state.project is not None:
        queue = [index]
        for one in queue:
            for other in _neighbours(state.project, one):
                if other.source.path not in found:
                    found[other.source.path] = other
                    queue.append(other)
    if len(found) > _LIMIT:
        found = {state.path: index}
    return {path: _file(state, found[path]) for path in _in_order(state.project, found)}


def _neighbours(project: Project, index: FileIndex) -> list[FileIndex]:
    """The files whose functions a file calls, and the files that call its own."""
    own, others = index.source.path, project.files.values() if index.elsewhere else ()
    callers = [x for x in others if any(c.source.path == own for c in _callees(project, x))]
    return [*_callees(project, index), *callers]


def is_out_of_view(state: FileState, path: str) -> bool:
    """Whether an import path is of a module that is neither installed nor a file of the run."""
    module = module_of(path)
    if not module or module.partition(".")[0] in sys.stdlib_module_names | _LANGUAGES:
        return False
    return state.project is None or state.project.file_of(module) is None


def _callees(project: Project, index: FileIndex) -> list[FileIndex]:
    found = (project.kernel(path) for path in sorted(index.foreign_device_calls))
    return [known[0] for known in found if known is not None]


def _in_order(project: Project | None, files: Mapping[str, FileIndex]) -> list[str]:
    """Paths, each after the paths of its callers; in a cycle, by name."""
    waiting, ordered = sorted(files), []
    while waiting:
        called = {
            other.source.path
            for path in waiting
            for other in (_callees(project, files[path]) if project is not None else ())
            if other.source.path != path
        }
        first = next((path for path in waiting if path not in called), waiting[0])
        waiting.remove(first)
        ordered.append(first)
    return ordered


def _file(state: FileState, index: FileIndex) -> _File:
    if index.source.path == state.path:
        return _File(state, index)
    text = index.source.text
    other = FileState(
        index.source.path, state.request, state.project, lambda rule, line: False, text, text
    )
    note_versions(other, index)
    return _File(other, index)


def note_versions(state: FileState, index: FileIndex) -> dict[str, str]:
    """Note the version that each function of a file starts from; their dialects by name."""
    found = {f.name: detect(f, index) for f in index.functions.values()}
    forced = None if state.request.source_version == "auto" else state.request.source_version
    state.starts = {n: forced or d.start or VERSIONS[-1] for n, d in found.items()}
    state.starts |= dict.fromkeys(_with_open_todos(index), "0.1")
    state.silent = {n: d.start is None and forced is None for n, d in found.items()}
    return {name: dialect.name for name, dialect in found.items()}


def _with_open_todos(index: FileIndex) -> list[str]:
    """Kernels that an earlier run left something of step 0.1 in."""
    return [
        f.name
        for f in index.functions.values()
        if has_open_mark(index.source.lines, _first_line(f) - 3, f.node.end_lineno or 0)
    ]


def _first_line(function: Function) -> int:
    return min([function.node.lineno, *(d.lineno for d in function.node.decorator_list)])
