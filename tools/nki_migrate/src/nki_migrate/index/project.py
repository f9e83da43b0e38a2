"""Other files of the project: their kernels and launches."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath

from nki_migrate.index.file import FileIndex, Function, Launch


@dataclass(slots=True)
class Project:
    """The indexes of all files of a run that mention nki, by module name (the file's stem)."""

    files: dict[str, FileIndex] = field(default_factory=dict)

    def add(self, index: FileIndex) -> None:
        """Make a file known; the first file of a stem wins."""
        self.files.setdefault(PurePath(index.source.path).stem, index)

    def link(self) -> None:
        """Tell every file which of its functions the kernels of the others reach."""
        while True:
            changed = False
            for stem, index in self.files.items():
                called = self._called_in(stem)
                if not called <= index.elsewhere:
                    self.files[stem] = FileIndex(index.source, index.elsewhere | called)
                    changed = True
            if not changed:
                return

    def _called_in(self, stem: str) -> set[str]:
        paths = {p for i in self.files.values() for p in i.foreign_device_calls}
        parts = [p.rpartition(".") for p in paths]
        found = {name for module, _, name in parts if module.rpartition(".")[2] == stem}
        return {name for name in found if self.files[stem].definition(name) is not None}

    def elsewhere(self, path: str) -> frozenset[str]:
        """The functions of a file that device functions of the others call."""
        index = self.files.get(PurePath(path).stem)
        return index.elsewhere if index is not None and index.source.path == path else frozenset()

    def kernel(self, path: str) -> tuple[FileIndex, Function] | None:
        """The kernel that an import path ("module.kernel") names."""
        module, _, name = path.rpartition(".")
        index = self.files.get(module.rpartition(".")[2])
        function = index.functions.get(name) if index is not None else None
        return (index, function) if index is not None and function is not None else None

    def launches(self, index: FileIndex, kernel: str) -> tuple[tuple[FileIndex, Launch], ...]:
        """Launches of a kernel of `index` in other files, each with its file."""
        stem = PurePath(index.source.path).stem
        return tuple(
            (other, launch)
            for other in self.files.values()
            if other is not index
            for launch in other.foreign_launches
            if launch.kernel.rpartition(".")[2] == kernel
            and launch.kernel.rpartition(".")[0].rpartition(".")[2] == stem
        )
