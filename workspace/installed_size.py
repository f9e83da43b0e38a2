"""`python workspace/installed_size.py`: what nki-runtime and nki-beta2 add to an environment that
has numpy and ml_dtypes, on every supported Python that runs here.

The figure that counts is the sum of the sizes of their files, bytecode included; it is calculated,
and what `pip install --target DIR` leaves is equal to 1 %. Folders are counted beside it, since
their size depends on the file system.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pythons
from members import ROOT, Member, members

INSTALLED = ("nki-dtypes", "neuroncore", "nki-runtime", "nki-beta2")
RECORD_LINES = 180
"""Bytes that RECORD has for a module: a line for the source and one for its bytecode."""
FOLDER_BYTES = 4096
COMPILE = """\
import importlib._bootstrap_external as importing
import sys
from pathlib import Path
for path in map(Path, sys.argv[1:]):
    code = importing.SourceLoader.source_to_code(None, path.read_bytes(), str(path))
    print(len(importing._code_to_timestamp_pyc(code)))
"""


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes of files, of the bytecode among them, and the number of folders."""

    files: int
    bytecode: int
    folders: int

    def __str__(self) -> str:
        with_folders = self.files + FOLDER_BYTES * self.folders
        return (
            f"{self.files / 1e6:.2f} MB, {self.bytecode / 1e6:.2f} of it bytecode; "
            f"{self.folders} folders make it {with_folders / 1e6:.2f}"
        )


def size_on(python: str | Path) -> Size:
    """The size where `python` compiles the modules."""
    chosen = [member for member in members() if member.name in INSTALLED]
    modules = [path for member in chosen for path in sorted(member.source.rglob("*.py"))]
    done = subprocess.run(
        [python, "-I", "-c", COMPILE, *modules], check=True, stdout=subprocess.PIPE, text=True
    )
    bytecode = sum(map(int, done.stdout.split()))
    parents = {path.parent for path in modules}
    data = [path for member in chosen for path in _shipped(member) if path.suffix != ".py"]
    sizes = sum(path.stat().st_size for path in [*modules, *data])
    # a folder of bytecode for each of modules, one of metadata for each distribution
    folders = len(parents | {path.parent for path in data}) + len(parents) + len(chosen)
    return Size(sizes + bytecode + RECORD_LINES * len(modules), bytecode, folders)


def _shipped(member: Member) -> list[Path]:
    """The files of a wheel: the package's, the licence, and the README in the metadata."""
    files = [p for p in member.source.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return [*files, ROOT / "LICENSE", member.directory / "README.md"]


if __name__ == "__main__":
    for version in pythons.SUPPORTED:
        if python := pythons.find(version):
            print(f"python {version}: {size_on(python)}")
