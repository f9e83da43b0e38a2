"""What other files say: which functions are kernels, and how they are launched."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePath

from nki_migrate.index.file import FileIndex, Function, Launch

__all__ = ["Project"]


@dataclass(slots=True)
class Project:
    """The indexes of all files of a run that mention nki, by module name (the file's stem)."""

    files: dict[str, FileIndex] = field(default_factory=dict)

    def add(self, index: FileIndex) -> None:
        """Make a file known; the first file of a stem wins."""
        self.files.setdefault(PurePath(index.source.path).stem, index)

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
