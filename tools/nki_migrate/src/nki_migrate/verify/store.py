"""Results of earlier runs, reused while nothing that they depend on has changed.

A result is stored under what was run (kernel, case, versions, options, and the tool's own files)
with the hash of every file of the user's that was read while it ran, and of the files in their
folders, where a file may appear that was not found before. What a kernel takes from elsewhere, the
clock or an environment variable, is not seen: `--no-cache` runs it again.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from neuroncore.commands.files import write_text

_PACKAGES = ("nki_dtypes", "neuroncore", "nki_runtime", "nki_beta1", "nki_beta2", "nki_migrate")
_LIBRARIES = ("numpy", "ml_dtypes")


@dataclass(frozen=True, slots=True)
class Stored:
    """A result of an earlier run, and the day of that run."""

    value: Any
    day: str


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of results, a file each. `reads` False: every result is computed again.

    `roots` are folders that are elsewhere in each run: name → path.
    """

    folder: Path
    reads: bool = True
    roots: Mapping[str, Path] = field(default_factory=dict)

    def find(self, *parts: Any) -> Stored | None:
        """The result of these parts, if no file that it depends on has changed."""
        if not self.reads:
            return None
        with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            document = json.loads(self._file(parts).read_text("utf-8"))
            if all(_hash(self._path(name)) == mark for name, mark in document["files"].items()):
                return Stored(document["value"], document["day"])
        return None

    def add(self, value: Any, files: Iterable[str], *parts: Any) -> None:
        """Store a result that depends on these files; nothing in a folder that cannot be written.

        Nothing may have changed the files since they were read.
        """
        read = {Path(file) for file in files}
        marks = {
            self._name(path): _hash(path) for path in sorted({*read, *(f.parent for f in read)})
        }
        document = {"day": date.today().isoformat(), "files": marks, "value": value}
        with suppress(OSError):
            file = self._file(parts)
            file.parent.mkdir(parents=True, exist_ok=True)
            write_text(file, json.dumps(document))

    def remove(self, *parts: Any) -> None:
        """Forget the result of these parts."""
        with suppress(OSError):
            self._file(parts).unlink()

    def _file(self, parts: tuple[Any, ...]) -> Path:
        text = repr((_tool(), *parts))
        for name, root in self.roots.items():
            text = text.replace(str(root), f"<{name}>")
        return self.folder / f"{_sha256(text.encode())[:32]}.json"

    def _name(self, path: Path) -> str:
        """The path, relative to the root that it is below."""
        for name, root in self.roots.items():
            if path.is_relative_to(root):
                return f"<{name}>/{path.relative_to(root).as_posix()}"
        return str(path)

    def _path(self, name: str) -> Path:
        for root_name, root in self.roots.items():
            if name.startswith(f"<{root_name}>/"):
                return root / name.removeprefix(f"<{root_name}>/")
        return Path(name)


def default_folder() -> Path:
    """`nki-migrate` in the user's folder of caches."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "nki-migrate"


def _hash(path: Path) -> str | None:
    """The hash of a file's content, or of the names of a folder's files; None: not readable."""
    try:
        content = _names(path) if path.is_dir() else path.read_bytes()
        return _sha256(content)
    except OSError:
        return None


def _names(folder: Path) -> bytes:
    files = (path.name for path in folder.iterdir() if path.is_file())
    return "\0".join(sorted(files)).encode(errors="surrogateescape")


def _sha256(content: bytes) -> str:
    from hashlib import sha256

    return sha256(content).hexdigest()


@cache
def _tool() -> str:
    """The identity of the runner: Python, libraries, our packages' files by time and size."""
    from importlib.metadata import version  # with email and zipfile: 30 ms of CPU time

    found = [sys.version, *(version(name) for name in _LIBRARIES)]
    for name in _PACKAGES:
        spec = find_spec(name)
        for folder in spec.submodule_search_locations or () if spec else ():
            found += _states(Path(folder))
    return _sha256("\n".join(found).encode())


def _states(folder: Path) -> list[str]:
    files = (f for f in folder.rglob("*") if f.suffix != ".pyc" and f.is_file())
    states = ((file, file.stat()) for file in sorted(files))
    return [f"{file} {state.st_size} {state.st_mtime_ns}" for file, state in states]
