"""Running a program as `python` would: as __main__, with its own sys.argv and sys.path[0]."""

from __future__ import annotations

import builtins
import io
import runpy
import sys
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Protocol

from nki_runtime.cli.imported_languages import find_source
from nki_runtime.recording.instrument import compile_script


class Program(Protocol):
    """Something to run: a file, or a module by name."""

    def source(self) -> Path | None:
        """The file to look at for imports; None if there is none to look at."""
        ...

    def folder(self) -> str:
        """What Python puts first on sys.path."""
        ...

    def run(self, args: list[str]) -> None:
        """Run it in this process, for good: sys.argv and __main__ stay changed."""
        ...


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
        runpy.run_module(self.name, run_name="__main__", alter_sys=True)


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
