"""Writing a file so that it is whole at every moment: aside first, then renamed into place.

A rename within one folder is atomic on POSIX and on NTFS; an interruption leaves either the old
file or the new one, and on Ctrl-C no temporary.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from neuroncore.commands.folders import new_folder, remove_abandoned

_MARK = ".nki-migrate-"
_ANY_WRITE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class ChangedMeanwhileError(Exception):
    """The file on disk differs from the one that was read; it was left alone."""


class ReadOnlyError(Exception):
    """The file's mode forbids writing; a rename would circumvent that."""


def replace_file(path: Path, old: bytes, new: bytes) -> None:
    """Put `new` in place of `old`; the file keeps its mode, a link keeps pointing where it did.

    Raises ChangedMeanwhileError when the file does not hold `old` any more, ReadOnlyError
    when the file's mode forbids writing, OSError when the folder cannot be written.
    """
    target = path.resolve(strict=True)
    if not target.stat().st_mode & _ANY_WRITE:
        raise ReadOnlyError("the file is read-only; chmod u+w allows it, --output-dir leaves it")
    if target.read_bytes() != old:
        raise ChangedMeanwhileError("the file changed while it was being migrated; run again")
    _write_aside(target, new, mode_from=target)


def write_file(path: Path, new: bytes, mode_from: Path | None = None) -> None:
    """Write a file into a folder that is made if needed; the mode is that of `mode_from`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_aside(path, new, mode_from)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait for the few milliseconds in which a temporary exists.

    A handler that takes note, and not a blocked signal: a library's thread (NumPy has some) would
    receive what the main thread blocks.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are handled in the main thread
        return
    arrived: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: arrived.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if arrived:
            signal.raise_signal(arrived[0])


def _write_aside(target: Path, new: bytes, mode_from: Path | None) -> None:
    with _signals_held():
        _write_and_rename(target, new, mode_from)


def _write_and_rename(target: Path, new: bytes, mode_from: Path | None) -> None:
    _tidy(target.parent)
    with new_folder(_MARK, target.parent) as folder:
        whole = folder / target.name
        with whole.open("wb") as file:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
        if mode_from is not None:
            shutil.copymode(mode_from, whole)
        whole.replace(target)


@cache
def _tidy(folder: Path) -> None:
    """Remove what a killed run has left, once for each folder."""
    remove_abandoned(folder, f"{_MARK}*")
