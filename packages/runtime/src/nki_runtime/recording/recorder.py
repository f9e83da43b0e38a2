"""`nki-run --record`: what every expression of a kernel was, as a facts file.

Schema `nki-facts/1`: kernels by file and name; per expression its range in the source (lines and
columns from 1, the end column exclusive), shape, dtype, memory, compile-time value and the bounds
of the loops around it. What changed between evaluations is a list of the distinct values; a tuple
is always inside such a list, so that [0, 1] is two numbers and [[0, 1]] one tuple.
"""

from __future__ import annotations

import importlib.util
import json
import linecache
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from neuroncore.commands.files import write_whole
from neuroncore.errors import Place
from neuroncore.machine.launch import RUNNING
from neuroncore.machine.observe import Evaluation, Watcher, watched_by
from nki_runtime.recording.instrument import compile_instrumented

SCHEMA = "nki-facts/1"
DISTINCT_KEPT = 256
"""Distinct values kept per fact of one expression; a loop variable rarely needs more."""


@dataclass(slots=True)
class _Expression:
    """Everything seen of one range of source."""

    facts: dict[str, list[Any]] = field(default_factory=dict)
    loops: dict[str, list[list[int]]] = field(default_factory=dict)
    runs: set[int] = field(default_factory=set)

    def add(self, described: Mapping[str, Any], event: Evaluation) -> None:
        for name, value in described.items():
            _remember(self.facts.setdefault(name, []), value)
        for name, bounds in event.loops.items():
            _remember(self.loops.setdefault(name, []), list(bounds))
        self.runs.add(event.run)


def _remember(seen: list[Any], value: Any) -> None:
    known = any(value == v and type(value) is type(v) for v in seen)
    if not known and len(seen) < DISTINCT_KEPT:
        seen.append(value)


class Recorder(Watcher):
    """Collects evaluations and writes them as a facts file."""

    def __init__(self) -> None:
        self._kernels: dict[tuple[str, str], dict[Place, _Expression]] = {}
        self._runs: dict[tuple[str, str], set[int]] = {}
        self._silent: dict[int, str] = {}
        """Launches that no expression has been seen of, by number: their kernel."""

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        launch = RUNNING.get()
        if launch is not None:
            self._silent[launch.number] = launch.kernel

    def evaluated(self, evaluation: Evaluation) -> None:
        self._silent.pop(evaluation.run, None)
        place = evaluation.place
        key = (place.file, evaluation.kernel)
        self._runs.setdefault(key, set()).add(evaluation.run)
        described = describe(evaluation.value)
        if described:
            expressions = self._kernels.setdefault(key, {})
            expressions.setdefault(place, _Expression()).add(described, evaluation)

    def silent(self) -> list[str]:
        """The kernels that ran and of which nothing is known, each once."""
        return list(dict.fromkeys(self._silent.values()))

    def facts(self, relative_to: Path) -> dict[str, Any]:
        """The facts file's content; paths below `relative_to` are made relative."""
        return {
            "schema": SCHEMA,
            "kernels": [
                {
                    "file": _relative(file, relative_to),
                    "kernel": kernel,
                    "runs": len(self._runs[file, kernel]),
                    "expressions": [
                        _entry(place, seen) for place, seen in sorted(found.items(), key=_order)
                    ],
                }
                for (file, kernel), found in sorted(self._kernels.items())
            ],
        }

    def write(self, path: Path) -> None:
        """Write the facts file whole or not at all."""
        text = json.dumps(self.facts(Path.cwd()), indent=1) + "\n"
        write_whole(path, lambda aside: aside.write_text(text))


def describe(value: Any) -> dict[str, Any]:
    """The facts of one value: a tensor's shape, dtype and memory, or a compile-time value."""
    if _is_compile_time(value):
        return {"value": list(value) if isinstance(value, tuple) else value}
    if not hasattr(type(value), "shape"):  # modules and proxies may answer any name, at any cost
        return {}
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if not isinstance(shape, tuple) or dtype is None:
        return {}
    memory = getattr(value, "buffer", None)
    found = {"shape": [int(n) for n in shape], "dtype": str(dtype)}
    return found | ({"memory": str(memory)} if hasattr(memory, "on_chip") else {})


def _is_compile_time(value: Any) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(_is_compile_time(v) for v in value)
    return isinstance(value, (bool, int, float, str)) and not isinstance(value, np.generic)


def _order(item: tuple[Place, _Expression]) -> tuple[int, int, int, int]:
    place = item[0]
    return place.line, place.column, place.end_line or 0, place.end_column or 0


def _entry(place: Place, seen: _Expression) -> dict[str, Any]:
    end_line, end_column = place.end_line or place.line, place.end_column or 0
    entry: dict[str, Any] = {
        "line": place.line,
        "column": _characters(place.file, place.line, place.column) + 1,
        "end_line": end_line,
        "end_column": _characters(place.file, end_line, end_column) + 1,
    }
    entry |= {name: _single(values, name) for name, values in seen.facts.items()}
    if seen.loops:
        entry["loops"] = {name: _single(values) for name, values in seen.loops.items()}
    return entry | {"runs": len(seen.runs)}


def _single(values: list[Any], name: str = "") -> Any:
    """The one value, or the list of all that were seen."""
    is_tuple = name == "value" and isinstance(values[0], list)
    return values[0] if len(values) == 1 and not is_tuple else values


def _characters(file: str, line: int, column: int) -> int:
    """Python counts columns in UTF-8 bytes; people and editors count characters."""
    text = linecache.getline(file, line).encode()
    return len(text[:column].decode(errors="replace"))


def _relative(file: str, folder: Path) -> str:
    path = Path(file).resolve()
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else str(path)


def load(file: Path) -> ModuleType:
    """The file as a module under its own name, its functions ready to be recorded.

    Inside `instrumented()` the modules that it imports are, too. Raises SyntaxError, and what the
    file's own statements raise.
    """
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None, f"{file}: no Python file"
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    exec(compile_instrumented(file.read_bytes(), str(file)), vars(module))
    return module


@contextmanager
def recorded(documents: list[Mapping[str, Any]], relative_to: Path) -> Iterator[None]:
    """Append the facts of the kernels that run inside the block, also when it ends in an error."""
    recorder = Recorder()
    try:
        with watched_by(recorder):
            yield
    finally:
        documents.append(recorder.facts(relative_to))
