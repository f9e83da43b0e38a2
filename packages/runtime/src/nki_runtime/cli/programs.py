"""Running a program as `python` would, and the languages that its source imports."""

from __future__ import annotations

import ast
import builtins
import io
import os
import re
import runpy
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Protocol

from neuroncore.commands.tracebacks import user_frames
from neuroncore.errors import OptionError
from neuroncore.python_source import parse_python
from nki_runtime.recording.instrument import compile_script


class WordsError(OptionError):
    """A mistake in the words that name a program and its arguments."""


class Program(Protocol):
    """Something to run: a file, or a module by name."""

    def source(self) -> Path | None:
        """The file to look at for imports; None if there is none to look at."""
        ...

    def folder(self) -> str:
        """The folder that Python puts first on sys.path."""
        ...

    def run(self, args: list[str]) -> None:
        """Run it in this process, for good: sys.argv and __main__ stay changed."""
        ...


_DESCRIPTOR = re.compile(r"/dev/(?:stdin|fd/(\d{1,4}))")
"""A file that is open: of `-`, of `<(...)` in a shell."""


def script_of(name: str) -> Script:
    """The script of a name, `-` is stdin. A pipe can be read once, a program also to show its
    lines: a file in memory takes the place of the pipe, at its end.
    """
    name = "/dev/stdin" if name == "-" else name
    if (found := _DESCRIPTOR.fullmatch(name)) and hasattr(os, "memfd_create"):
        with suppress(OSError):  # it is not open
            _read_once(int(found[1] or 0))
    return Script(name)


def _read_once(descriptor: int) -> None:
    """Leave it at the end of a file in memory of what a pipe held, or of the file that it is."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.lseek(descriptor, 0, os.SEEK_END)
        return
    with open(descriptor, "rb", closefd=False) as pipe:
        text = pipe.read()
    with os.fdopen(os.memfd_create("program"), "wb") as copy:
        copy.write(text)
        copy.flush()
        os.dup2(copy.fileno(), descriptor)


@dataclass(frozen=True, slots=True)
class Script:
    """A .py file, or a folder or zip file with a __main__.py."""

    file: str

    def source(self) -> Path | None:
        path = Path(self.file)
        path = path / "__main__.py" if path.is_dir() else path
        return path if path.suffix == ".py" or path.is_file() else None

    def folder(self) -> str:
        if Path(self.file).is_dir():
            return str(Path(self.file).absolute())
        if _DESCRIPTOR.fullmatch(self.file):
            return str(Path.cwd())
        return str(Path(self.file).resolve().parent)

    def run(self, args: list[str]) -> None:
        sys.argv = [self.file, *args]
        if Path(self.file).is_dir() or self.file.endswith((".zip", ".pyz")):
            runpy.run_path(str(Path(self.file).absolute()), run_name="__main__")
            return
        full = str(Path(self.file).absolute())
        with io.open_code(full) as stream:
            code = compile_script(stream.read(), full)
        exec(code, vars(_new_main(full)))


@dataclass(frozen=True, slots=True)
class Module:
    """A module or package by name, as after `python -m`."""

    name: str

    def source(self) -> Path | None:
        path = [self.folder(), *sys.path]
        return find_source(f"{self.name}.__main__", path) or find_source(self.name, path)

    def folder(self) -> str:
        return str(Path.cwd())

    def run(self, args: list[str]) -> None:
        sys.argv = [self.name, *args]
        try:
            runpy.run_module(self.name, run_name="__main__", alter_sys=True)
        except ImportError as missing:
            if user_frames(missing):
                raise
            is_package = "is a package" in str(missing)
            what = "it is a package without __main__" if is_package else "no such module"
            raise WordsError(f"can't run {self.name!r}: {what}") from None


def enter(program: Program) -> None:
    """Let imports look where they will when `program` runs; Python had put our own folder there."""
    if not sys.flags.safe_path:
        sys.path[0] = program.folder()


def _new_main(file: str) -> ModuleType:
    """A fresh __main__, so that the program neither sees our names nor loses its own at exit."""
    main = ModuleType("__main__")
    main.__file__ = file
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    main.__loader__ = SourceFileLoader("__main__", file)
    vars(main)["__annotations__"] = {}
    sys.modules["__main__"] = main
    return main


LANGUAGE_OF_ROOT = {"neuronxcc": "beta1", "nki": "beta2"}


def detect_languages(source: Path, path: Sequence[str]) -> list[str]:
    """Backends that the program in `source` imports, in the order of LANGUAGE_OF_ROOT."""
    names = set().union(*program_files(source, path).values())
    roots = {name.partition(".")[0] for name in names}
    return [backend for root, backend in LANGUAGE_OF_ROOT.items() if root in roots]


def program_files(source: Path, path: Sequence[str]) -> dict[Path, set[str]]:
    """The file, and the files that it imports from its own folders `path`, and so on from there.

    Each with the names that it imports. A file that can't be read or parsed imports none: running
    it reports the error.
    """
    seen: dict[Path, set[str]] = {}
    todo = [source]
    while todo:
        file = todo.pop()
        if file not in seen:
            names = seen[file] = set(_imported_names(file))
            todo += [f for name in names if (f := find_source(name, path)) is not None]
    return seen


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
        tree = parse_python(file.read_bytes())
    except (OSError, SyntaxError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
