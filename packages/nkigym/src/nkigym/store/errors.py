"""Errors of a store, and SQLite's errors in our words."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neuroncore.commands.interruption import delayed_signals
from neuroncore.errors import KernelError


class StoreError(KernelError):
    """A store that cannot be used; the base of the others. Nothing of it has been changed.

    It is about a file and belongs to no line of a program.
    """

    def __init__(
        self, what: str, *,
        expected: str | None = None, got: str | None = None, hint: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(what, expected=expected, got=got, hint=hint)
        self.place = None


class StoreCorruptError(StoreError):
    """A file that is not a store, or that is damaged."""


class StoreVersionError(StoreError):
    """A store that another version of nkigym has written."""


class StoreFullError(StoreError):
    """No room for more; what was written before is kept."""


class StoreBusyError(StoreError):
    """Another process has kept the store to itself for too long."""


_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNUSABLE = {
    sqlite3.SQLITE_CANTOPEN: "cannot be opened",
    sqlite3.SQLITE_READONLY: "can only be read",
    sqlite3.SQLITE_PERM: "cannot be opened",
    sqlite3.SQLITE_IOERR: "cannot be read or written",
}
_PRIMARY = 0xFF  # extended codes have the primary one in their last byte


@contextmanager
def sqlite_calls(path: Path) -> Iterator[None]:
    """SQLite's errors about a file are ours. Signals wait until the end: some file systems let one
    interrupt a write, which SQLite reports as an error of the medium.
    """
    try:
        with delayed_signals():
            yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as wrong:  # the latter of damaged texts
        code = getattr(wrong, "sqlite_errorcode", 0)
        name = getattr(wrong, "sqlite_errorname", None)
        raise _as_ours(path, {code, code & _PRIMARY}, name) from None


def _as_ours(path: Path, codes: set[int], name: str | None) -> StoreError:
    if codes.intersection(_FULL):
        return StoreFullError(
            f"no room for more in {path}", hint="what was found before is kept there"
        )
    if codes.intersection(_BUSY):
        return StoreBusyError(
            f"another process is writing to {path}", hint="run it again, or name another file"
        )
    if unusable := codes.intersection(_UNUSABLE):
        if path.is_dir():
            return StoreError(f"{path} is a folder", expected="the file of a store")
        return StoreError(
            f"{path} {_UNUSABLE[min(unusable)]}", expected="the file of a store", got=name
        )
    return StoreCorruptError(
        f"{path} is damaged or not a store of nkigym",
        hint="it is left as it is; name another file",
    )
