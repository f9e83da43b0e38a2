"""Which languages a program imports, read from its source without running any of it."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from importlib.machinery import PathFinder
from pathlib import Path

LANGUAGE_OF_ROOT = {"neuronxcc": "beta1", "nki": "beta2"}


def detect_languages(source: Path, path: Sequence[str]) -> list[str]:
    """Backends that the program in `source` imports, in the order of LANGUAGE_OF_ROOT.

    Reads the file and the files that it imports from its own folders `path`, and so on from there.
    A file that can't be read or parsed is skipped: running it reports the error.
    """
    seen: set[Path] = set()
    roots: set[str] = set()
    todo = [source]
    while todo:
        file = todo.pop()
        if file in seen:
            continue
        seen.add(file)
        names = set(_imported_names(file))
        roots |= {name.partition(".")[0] for name in names}
        todo += [f for name in names if (f := find_source(name, path)) is not None]
    return [backend for root, backend in LANGUAGE_OF_ROOT.items() if root in roots]


def find_source(name: str, path: Sequence[str]) -> Path | None:
    """The .py file of module `name` under the folders `path`, without importing its parents."""
    where: Sequence[str] | None = [os.fspath(folder) for folder in path]
    spec = None
    parts = name.split(".")
    for end in range(1, len(parts) + 1):
        if where is None:
            return None
        spec = PathFinder.find_spec(".".join(parts[:end]), list(where))
        if spec is None:
            return None
        locations = spec.submodule_search_locations
        where = None if locations is None else list(locations)
    origin = spec.origin if spec is not None and spec.has_location else None
    return Path(origin) if origin and origin.endswith(".py") else None


def _imported_names(file: Path) -> Iterator[str]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
