"""Folders that last as long as a run: locked by it, removed by a later one where it was killed."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import rmtree

LOCK, UNLOCKED = ".nki-run", "new"
START_S = 60.0
"""How old a lock's file is at least that a killed process had not locked yet."""


@contextmanager
def new_folder(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """A new folder in `parent` (default: temporary) that is removed at the end."""
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        with (made / UNLOCKED).open("w+b") as lock:
            with suppress(OSError, ImportError):  # a file system or system without locks
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_SH)
                Path(lock.name).rename(made / LOCK)
            yield made
    finally:
        rmtree(made, ignore_errors=True)


@contextmanager
def same_folder() -> Iterator[None]:
    """Return to the current folder, which the user's code may change."""
    before = None
    with suppress(OSError):  # it was removed
        before = os.getcwd()  # noqa: PTH109
    try:
        yield
    finally:
        if before is not None:
            os.chdir(before)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """This process, and the ones that it forks, keep a folder of another one as well."""
    with ExitStack() as opened:
        with suppress(OSError, ImportError):  # a file system or system without locks
            import fcntl

            lock = opened.enter_context((folder / LOCK).open("r+b"))
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield


def remove_abandoned(
    parent: Path, pattern: str, remove: Callable[[Path], object] = rmtree
) -> None:  # fmt: skip
    """Remove the folders of such names that no process has locked."""
    unlocked = filter(_is_alone, parent.glob(f"{pattern}/{UNLOCKED}"))
    for lock in (*parent.glob(f"{pattern}/{LOCK}"), *unlocked):
        if lock.is_symlink() or lock.parent.is_symlink():
            continue
        with suppress(OSError, ImportError), lock.open("r+b") as opened:
            import fcntl

            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(lock.parent)


def _is_alone(file: Path) -> bool:
    """Whether it is an old file without content, and the only one of its folder."""
    with suppress(OSError):
        found = file.stat()
        is_old = time.time() - found.st_mtime > START_S
        return is_old and not found.st_size and [*file.parent.iterdir()] == [file]
    return False
