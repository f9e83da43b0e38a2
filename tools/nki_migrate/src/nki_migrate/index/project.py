"""Other files of the project: their kernels and launches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from nki_migrate.index.file import FileIndex, Function, Launch
from nki_migrate.index.launchers import ANY_MODULE


def module_of(path: str) -> str:
    """The module that an import path names a member of."""
    return path.rpartition(".")[0]


def file_of(module: str, paths: Collection[str]) -> str | None:
    """The file of a module: of those with its name the one that agrees in most folders."""
    parts = module.split(".")
    own = [path for path in paths if PurePath(path).stem == parts[-1]]
    return (
        max(own, key=lambda path: _shared(parts, PurePath(path).with_suffix("").parts))
        if own
        else None
    )


def _shared(parts: Sequence[str], others: Sequence[str]) -> int:
    """How many of the last parts are equal."""
    pairs = enumerate(zip(reversed(parts), reversed(others), strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(parts), len(others)))


@dataclass(slots=True)
class Project:
    """The indexes of all files of a run that mention nki, by path."""

    files: dict[str, FileIndex] = field(default_factory=dict)
    linked: dict[tuple[str, ...], object] = field(default_factory=dict)
    """What the engine found in files that call each other's device functions, by their paths."""

    def add(self, index: FileIndex) -> None:
        """Make a file known."""
        self.files[index.source.path] = index

    def link(self) -> None:
        """Tell every file which of its functions the kernels of the others reach."""
        while True:
            changed = False
            for path, index in self.files.items():
                called = self._called_in(path)
                if not called <= index.elsewhere:
                    self.files[path] = FileIndex(index.source, index.elsewhere | called)
                    changed = True
            if not changed:
                return

    def _called_in(self, path: str) -> set[str]:
        called = {p for i in self.files.values() for p in i.foreign_device_calls}
        names = {p.rpartition(".")[2] for p in called if self.file_of(module_of(p)) == path}
        return {name for name in names if self.files[path].definition(name) is not None}

    def file_of(self, module: str) -> str | None:
        """The path of a module's file."""
        return file_of(module, self.files)

    def elsewhere(self, path: str) -> frozenset[str]:
        """The functions of a file that device functions of the others call."""
        index = self.files.get(path)
        return index.elsewhere if index is not None else frozenset()

    def kernel(self, path: str) -> tuple[FileIndex, Function] | None:
        """The kernel that an import path ("module.kernel") names."""
        index = self.files.get(self._home(path) or "")
        function = index.functions.get(path.rpartition(".")[2]) if index is not None else None
        return (index, function) if index is not None and function is not None else None

    def _home(self, path: str) -> str | None:
        """The file that a path names; of any module, the only one that has such a kernel."""
        module, _, name = path.rpartition(".")
        if module != ANY_MODULE:
            return self.file_of(module)
        found = [i.functions.get(name) for i in self.files.values()]
        homes = [p for p, f in zip(self.files, found, strict=True) if f is not None and f.entry]
        return homes[0] if len(homes) == 1 else None

    def launches(self, index: FileIndex, kernel: str) -> tuple[tuple[FileIndex, Launch], ...]:
        """Launches of a kernel of `index` in other files, each with its file."""
        return tuple(
            (other, launch)
            for other in self.files.values()
            if other is not index
            for launch in other.foreign_launches
            if launch.kernel.rpartition(".")[2] == kernel
            and self._home(launch.kernel) == index.source.path
        )
