"""Errors of stores."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

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


_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_PRIMARY = 0xFF  # extended codes have the primary one in their last byte


@dataclass(frozen=True, slots=True)
class TranslatedErrors:
    """A context in which SQLite's errors about a file are ours."""

    path: Path

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, _: object, wrong: BaseException | None, __: object) -> None:
        if isinstance(wrong, sqlite3.DatabaseError):
            code = getattr(wrong, "sqlite_errorcode", 0) & _PRIMARY
            raise _as_ours(self.path, wrong, code) from None


def _as_ours(path: Path, wrong: sqlite3.DatabaseError, code: int) -> StoreError:
    if code in _FULL:
        return StoreFullError(
            f"no room for more in {path}: {wrong}", hint="what was found before is kept there"
        )
    if code in _BUSY:
        return StoreBusyError(f"another process is writing to {path}", got=str(wrong))
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return StoreError(f"{path} cannot be opened or written", got=str(wrong))
    return StoreCorruptError(
        f"{path} is damaged or not a store of nkigym", got=str(wrong),
        hint="it is left as it is; name another file",
    )  # fmt: skip
