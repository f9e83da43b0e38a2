"""Observations of a run of the old kernel: facts files of `nki-run --record`, by place.

A document holds what launches of one kernel showed. What an expression was in different documents
stays apart, so that two sizes count as equal only where they are equal in each. Schema
`nki-facts/1`; of a file, each entry of a kernel that is there again is a document of its own.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from neuroncore.documents import parse_json, read_utf8, unreadable, wrong_structure
from nki_migrate.index import walk
from nki_migrate.index.source import Source, Span

SCHEMA = "nki-facts/1"
_KERNEL_KEYS = {"file", "kernel", "runs", "expressions"}
_PLACE_KEYS = {"line", "column", "end_line", "end_column"}
_KEYS = _PLACE_KEYS | {"shape", "dtype", "memory", "value", "loops", "runs"}


class FactsError(Exception):
    """A facts file that cannot be used; the text says which, where and what was expected."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Facts about an expression in one document: each once, in the order of appearance."""

    shapes: tuple[tuple[int, ...], ...] = ()
    dtypes: tuple[str, ...] = ()
    memories: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    def joined(self, other: Seen) -> Seen:
        """Both, as when two kernels reach the same helper."""
        return Seen(
            _union(self.shapes, other.shapes),
            _union(self.dtypes, other.dtypes),
            _union(self.memories, other.memories),
            _union(self.values, other.values),
        )


def _union(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    known = [(type(x), x) for x in a]
    return (*a, *(x for x in b if (type(x), x) not in known))


@dataclass(frozen=True, slots=True)
class Observation:
    """Facts about an expression: document number → facts, where it was evaluated."""

    by_run: Mapping[int, Seen]

    @property
    def runs(self) -> tuple[Seen, ...]:
        """The facts without their documents."""
        return tuple(self.by_run.values())

    @property
    def is_tensor(self) -> bool:
        """Whether it was a tensor, and nothing else, whenever it was evaluated."""
        return all(run.shapes and not run.values for run in self.runs)

    @property
    def rank(self) -> int | None:
        """The number of dimensions, if it was always the same."""
        return _single(len(shape) for run in self.runs for shape in run.shapes)

    @property
    def memory(self) -> str | None:
        """Where it lived ("hbm", "sbuf", "psum"), if that was always the same."""
        found = _single(memory for run in self.runs for memory in run.memories)
        return "hbm" if found is not None and found.endswith("hbm") else found

    @property
    def dtypes(self) -> dict[int, str] | None:
        """Its dtype in each document; None if one saw several."""
        return _one_each({n: run.dtypes for n, run in self.by_run.items()})

    @property
    def numbers(self) -> dict[int, int | float] | None:
        """Its compile-time number in each document; None if it changed or was something else."""
        found = _one_each({n: run.values for n, run in self.by_run.items()})
        return found if found and self.kind is not None else None

    @property
    def kind(self) -> type | None:
        """int or float, if every value was a number of that type."""
        if any(run.shapes or not run.values for run in self.runs):
            return None
        kinds = {type(v) for run in self.runs for v in run.values}
        return kinds.pop() if len(kinds) == 1 and kinds <= {int, float} else None

    def sizes(self, axis: int) -> dict[int, tuple[int, ...]]:
        """Per document, the sizes that a dimension had."""
        return {n: tuple(dict.fromkeys(s[axis] for s in r.shapes)) for n, r in self.by_run.items()}


def _single(values: Iterable[Any]) -> Any:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _one_each(groups: Mapping[int, tuple[Any, ...]]) -> dict[int, Any] | None:
    if not all(len(g) == 1 for g in groups.values()):
        return None
    return {n: g[0] for n, g in groups.items()}


class FileFacts:
    """The observations of one file's expressions."""

    def __init__(self, documents: Sequence[Mapping[Span, Seen]]) -> None:
        self._documents = documents

    def at(self, span: Span) -> Observation | None:
        """The observation of the expression at a place; None where no run evaluated it."""
        runs = {n: d[span] for n, d in enumerate(self._documents) if span in d}
        return Observation(runs) if runs else None


@dataclass(frozen=True, slots=True)
class Observed:
    """All facts of a migration: per document and file, what its expressions were."""

    documents: tuple[tuple[tuple[str, tuple[tuple[Span, Seen], ...]], ...], ...] = ()
    launched: frozenset[tuple[str, str]] = frozenset()  # a file, and a kernel whose launch ran it

    def __bool__(self) -> bool:
        return bool(self.documents)

    def __add__(self, other: Observed) -> Observed:
        return Observed(self.documents + other.documents, self.launched | other.launched)

    def about(self, path: str) -> Observed:
        """The observations of one file: all that a process needs that migrates it."""
        kept = (tuple((f, p) for f, p in d if _is_file(f, path)) for d in self.documents)
        return Observed(tuple(d for d in kept if d), self.launched)

    def is_launched(self, path: str, kernel: str) -> bool:
        """Whether a run launched the kernel of a file."""
        return any(name == kernel and _is_file(file, path) for file, name in self.launched)

    def of_file(self, path: str, source: Source) -> FileFacts | None:
        """The facts that fit the file's text, or None.

        Facts of another version of the file are left out: one of their places holds no expression.
        """
        if not self.documents:
            return None
        spans = {source.span(node) for node in walk(source.tree) if isinstance(node, ast.expr)}
        found = []
        for document in self.documents:
            mine = [dict(entries) for file, entries in document if _is_file(file, path)]
            if len(mine) == 1 and mine[0].keys() <= spans:
                found.append(mine[0])
        return FileFacts(found) if found else None


def _is_file(recorded: str, path: str) -> bool:
    """Whether two paths mean one file: the shorter is how the longer ends."""
    a, b = _inner_parts(recorded), _inner_parts(path)
    length = min(len(a), len(b))
    return length > 0 and a[-length:] == b[-length:]


def _inner_parts(path: str) -> tuple[str, ...]:
    parts = PurePath(path).parts
    return parts[sum(part == ".." for part in parts) :]


def read_facts(path: Path) -> Observed:
    """The facts of one file. Raises FactsError for a file of another schema."""
    try:
        document = parse_json(read_utf8(path))
    except OSError as error:
        raise FactsError(f"--facts {path}: cannot be read: {unreadable(error)}") from None
    except ValueError as error:
        raise FactsError(f"--facts {path}: not JSON: {error}") from None
    return facts_of(document, f"--facts {path}")


def facts_of(document: Any, where: str) -> Observed:
    """The facts of a parsed document. Raises FactsError."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        got = document.get("schema") if isinstance(document, dict) else type(document).__name__
        raise FactsError(f'{where}: expected schema = "{SCHEMA}", got {got!r}')
    _known(document, {"schema", "kernels"}, where)
    launches: dict[tuple[str, int], dict[str, dict[Span, Seen]]] = {}
    times: Counter[tuple[str, str]] = Counter()
    place = where
    try:
        for number, kernel in enumerate(document["kernels"], 1):
            place = f"{where}: kernel {number}"
            file, name = str(kernel["file"]), str(kernel["kernel"])
            _known(kernel, _KERNEL_KEYS, f"{where}: kernel {name}")
            times[file, name] += 1
            places = launches.setdefault((name, times[file, name]), {}).setdefault(file, {})
            for line, entry in enumerate(kernel["expressions"], 1):
                place = f"{where}: kernel {number} ({name}), expression {line}"
                span, seen = _entry(entry, where)
                places[span] = places[span].joined(seen) if span in places else seen
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as error:
        what = wrong_structure(error)
        raise FactsError(f"{place}: {what}; nki-run --record writes such files") from None
    return Observed(
        tuple(
            tuple((file, tuple(places.items())) for file, places in sorted(files.items()))
            for files in launches.values()
        ),
        frozenset(times),
    )


def _known(table: Mapping[str, Any], keys: set[str], where: str) -> None:
    if unknown := sorted(set(table) - keys):
        raise FactsError(f"{where}: unknown key {unknown[0]!r}; expected {', '.join(sorted(keys))}")


def _entry(entry: Mapping[str, Any], where: str) -> tuple[Span, Seen]:
    _known(entry, _KEYS, where)
    line, column, end_line, end_column = (
        int(entry[name]) for name in ("line", "column", "end_line", "end_column")
    )
    shape = entry.get("shape")
    shapes = () if shape is None else shape if _is_nested(shape) else (shape,)
    return (line, column, end_line, end_column), Seen(
        tuple(tuple(int(n) for n in s) for s in shapes),
        _several(entry, "dtype"),
        _several(entry, "memory"),
        tuple(tuple(v) if isinstance(v, list) else v for v in _several(entry, "value")),
    )


def _is_nested(shape: Sequence[Any]) -> bool:
    return bool(shape) and isinstance(shape[0], list)


def _several(entry: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """One value, or the list of all that were seen."""
    value = entry.get(name)
    return () if value is None else tuple(value) if isinstance(value, list) else (value,)
