"""Files of a clone at one commit, read without touching the clone's working tree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

# Answered by the switch, never by a file of a repository.
SWITCHED = frozenset({"neuronxcc", "nki"})
# Parts of the vendor's package that are not NKI: no file of a repository holds them, nor do we.
PRIVATE = re.compile(r"neuronxcc\.nki\.(_\w+|kernels|nccl|compiler\.backends)(?=\.|$)")
# What an environment that has our packages has, too.
INSTALLED = frozenset({"numpy", "ml_dtypes"})


class SourceError(Exception):
    """A file of the corpus that cannot be had; the text says which and why."""


@dataclass(frozen=True)
class Snapshot:
    """A repository as it was at a commit."""

    clone: Path
    commit: str

    def read(self, path: str) -> bytes:
        """The bytes of a file. Raises SourceError."""
        return self._git("show", f"{self.commit}:{path}")

    @cached_property
    def paths(self) -> frozenset[str]:
        """Every file of the repository."""
        names = self._git("ls-tree", "-r", "-z", "--name-only", self.commit).decode()
        return frozenset(names.split("\0")) - {""}

    def _git(self, *arguments: str) -> bytes:
        command = ("git", "-C", str(self.clone), *arguments)
        done = subprocess.run(command, capture_output=True)
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()
            raise SourceError(f"{' '.join(command)}: {said}")
        return done.stdout


@dataclass(frozen=True)
class Extracted:
    """A file and the modules of its repository that it imports, laid out in a folder.

    `search_path` goes into sys.path; `module` is then the file's dotted name. `absent` are
    the other packages that it imports: nothing in the repository or the environment answers. So
    are private parts of the vendor's package.
    """

    file: Path
    module: str
    search_path: tuple[Path, ...]
    absent: tuple[str, ...]


@dataclass
class _Walk:
    """The import closure of a file: what was found, and where its roots are."""

    snapshot: Snapshot
    found: dict[str, bytes] = field(default_factory=dict)
    roots: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)

    def visit(self, path: str) -> None:
        if path in self.found:
            return
        source = self.found[path] = self.snapshot.read(path)
        for name in sorted(set(imported_names(source, path))):
            self._follow(name, path)

    def _follow(self, name: str, importer: str) -> None:
        top = name.lstrip("/").partition(".")[0]
        if PRIVATE.match(name):
            self.absent.add(name)
        if top in SWITCHED | INSTALLED | sys.stdlib_module_names:
            return
        if target := self._locate(name, importer):
            self.visit(target)
        elif not name.startswith("/") and not self._is_member(name, importer):
            self.absent.add(name)

    def _locate(self, name: str, importer: str) -> str | None:
        """The file of a dotted name; the nearest folder above the importer wins."""
        if name.startswith("/"):  # relative: resolved to a path of the repository already
            return self._module_at("", name.lstrip("/").replace(".", "/"))
        inner = name.replace(".", "/")
        above = [str(parent) for parent in PurePosixPath(importer).parents]
        elsewhere = [*self._folders_holding(inner)] if "." in name else []
        for folder in ["" if f == "." else f for f in (*above, *elsewhere)]:
            if target := self._module_at(folder, inner):
                self.roots.add(folder)
                return target
        return None

    def _module_at(self, folder: str, inner: str) -> str | None:
        base = f"{folder}/{inner}" if folder else inner
        candidates = (f"{base}.py", f"{base}/__init__.py")
        return next((path for path in candidates if path in self.snapshot.paths), None)

    def _folders_holding(self, inner: str) -> list[str]:
        tail = f"/{inner}.py"
        folders = [p.removesuffix(tail) for p in self.snapshot.paths if p.endswith(tail)]
        return sorted(folders, key=lambda folder: (folder.count("/"), folder))

    def _is_member(self, name: str, importer: str) -> bool:
        """Whether the name is one that a module defines: `a.b.c` where `a.b` is a module."""
        parent = name.rpartition(".")[0]
        return bool(parent) and (
            parent in self.absent or self._locate(parent, importer) is not None
        )


def imported_names(source: bytes, path: str) -> Iterator[str]:
    """What a file imports, also inside functions: dotted names, `/a/b.c` for a relative one."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise SourceError(f"{path}: {error}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, path)
            yield base
            dot = "" if base.endswith("/") else "."
            yield from (f"{base}{dot}{alias.name}" for alias in node.names if alias.name != "*")


def _base(node: ast.ImportFrom, path: str) -> str:
    if not node.level:
        return node.module or ""
    folder = PurePosixPath(path).parents[node.level - 1]
    prefix = "/" if str(folder) == "." else f"/{folder}/"
    return prefix + (node.module or "")


def extract(snapshot: Snapshot, path: str, into: Path) -> Extracted:
    """Lay out a file and its import closure under `into`, which should be empty.

    A package's `__init__.py` comes along only where a name is imported from it: the other folders
    are namespace packages, so that no unrelated module of the repository runs.
    """
    walk = _Walk(snapshot)
    walk.visit(path)
    for name, source in walk.found.items():
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source)
    root = _root_of(path, walk)
    inner = PurePosixPath(path).relative_to(root or ".").with_suffix("")
    folders = dict.fromkeys((root, str(PurePosixPath(path).parent), *sorted(walk.roots)))
    return Extracted(
        into / path,
        ".".join(inner.parts),
        tuple(into / folder for folder in folders),
        tuple(sorted(_outermost(walk.absent))),
    )


def _root_of(path: str, walk: _Walk) -> str:
    """The folder that makes the file's dotted name: relative imports need its packages."""
    is_relative = any(name.startswith("/") for name in imported_names(walk.found[path], path))
    if not is_relative:
        return "" if str(PurePosixPath(path).parent) == "." else str(PurePosixPath(path).parent)
    above = {str(parent) for parent in PurePosixPath(path).parents} | {""}
    return min((root for root in walk.roots if root in above), key=len, default="")


def _outermost(names: set[str]) -> set[str]:
    """The packages that hold the names; of the vendor's, its private parts."""
    private = {name: found[0] for name in names if (found := PRIVATE.match(name))}
    return {private.get(name) or name.partition(".")[0] for name in names if name}


def absent_packages(snapshot: Snapshot, path: str) -> set[str]:
    """The packages that a file and its import closure need from elsewhere."""
    walk = _Walk(snapshot)
    walk.visit(path)
    return _outermost(walk.absent)
