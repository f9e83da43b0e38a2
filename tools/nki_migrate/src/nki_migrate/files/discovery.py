"""Finding the files to work on: folders, excludes, `.gitignore`, links that loop.

Nothing here stops at the first obstacle: what cannot be read is returned as a `Problem` beside
the files that can, so that one bad link does not hide a hundred good kernels.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from nki_migrate.files.ignore_patterns import (
    IgnoreRules,
    gitignore_in,
    gitignores_above,
    is_ignored,
)

DEFAULT_EXCLUDES = (".git", ".venv", ".tox", "build", "dist", "node_modules", "site-packages")


@dataclass(frozen=True, slots=True)
class Problem:
    """A path that was asked for, or met, and could not be used, with the reason."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Exclusion:
    """Exclusions of a search: globs seen from `root`, and git's ignore files if `gitignore`."""

    root: Path
    globs: tuple[str, ...] = DEFAULT_EXCLUDES
    gitignore: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """The files to work on, in path order, and the paths that cannot be read."""

    files: tuple[Path, ...]
    problems: tuple[Problem, ...]


@dataclass(slots=True)
class _Search:
    exclusion_for: Callable[[Path], Exclusion]
    suffixes: tuple[str, ...]
    files: dict[Path, Path] = field(default_factory=dict)  # resolved → as written
    problems: list[Problem] = field(default_factory=list)

    def reject(self, path: Path, reason: str) -> None:
        self.problems.append(Problem(str(path), reason))

    def add_file(self, path: Path) -> None:
        """Take one file; a second name for the same file is not a second file."""
        try:
            resolved = path.resolve(strict=True)
        except (OSError, RuntimeError) as error:  # RuntimeError: link loops before Python 3.13
            self.reject(path, _why_unresolved(path, error))
            return
        if not resolved.is_file():
            self.reject(path, "not a regular file")
            return
        self.files.setdefault(resolved, path)

    def walk(self, folder: Path) -> None:
        """Take every file of the wanted kinds below a folder that is not excluded."""
        exclusion = self.exclusion_for(folder)
        if exclusion.gitignore and not _in_git(folder.resolve()):
            exclusion = replace(exclusion, gitignore=False)
        rules = [IgnoreRules.of(exclusion.root.resolve(), exclusion.globs)]
        if exclusion.gitignore:
            rules += gitignores_above(folder.resolve().parent)
        self._descend(folder, folder.resolve(), rules, exclusion, frozenset())

    def _descend(
        self,
        folder: Path,
        resolved: Path,
        rules: list[IgnoreRules],
        exclusion: Exclusion,
        ancestors: frozenset[Path],
    ) -> None:
        own = gitignore_in(resolved) if exclusion.gitignore else None
        rules = [*rules, own] if own else rules
        ancestors = ancestors | {resolved}
        for entry in self._entries(folder):
            path = folder / entry.name
            is_directory = _is_directory(entry)
            if is_ignored(resolved / entry.name, is_directory, rules):
                continue
            if is_directory:
                self._enter(path, rules, exclusion, ancestors)
            elif entry.name.endswith(self.suffixes):
                self.add_file(path)

    def _enter(
        self,
        path: Path,
        rules: list[IgnoreRules],
        exclusion: Exclusion,
        ancestors: frozenset[Path],
    ) -> None:
        target = path.resolve()
        if target in ancestors:
            self.reject(path, f"a link that loops back to {target.name}/; not entered again")
            return
        self._descend(path, target, rules, exclusion, ancestors)

    def _entries(self, folder: Path) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                yield from sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self.reject(folder, f"folder cannot be read: {error.strerror}")


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads back to itself; rejected when it is read
        return False


def _in_git(folder: Path) -> bool:
    return any((parent / ".git").exists() for parent in (folder, *folder.parents))


def _why_unresolved(path: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        if path.exists():  # a pipe that a shell has opened, a file that was removed while open
            return "not a regular file; - is stdin"
        return "a link to nothing" if path.is_symlink() else "no such file or directory"
    if isinstance(error, RuntimeError) or "Too many levels" in str(error):
        return "a link that loops"
    return f"cannot be read: {getattr(error, 'strerror', None) or error}"


def find_files(
    paths: Iterable[Path],
    exclusion_for: Callable[[Path], Exclusion],
    suffixes: tuple[str, ...] = (".py",),
) -> Found:
    """The files named by `paths`: files as they are, folders searched for files of the suffixes.

    A file named by itself is taken in spite of excludes. `exclusion_for(folder)` gives what
    to leave out below a folder that was named.
    """
    search = _Search(exclusion_for, suffixes)
    for path in paths:
        if path.is_dir():
            search.walk(path)
        else:
            search.add_file(path)
    files = sorted(search.files.values(), key=lambda path: path.as_posix())
    return Found(tuple(files), tuple(search.problems))
