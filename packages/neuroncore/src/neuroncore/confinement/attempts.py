"""Attempts of a confined program at what it may not do, for the report that it writes itself."""

from __future__ import annotations

from mmap import mmap

_SHARED = mmap(-1, 1 << 14)
"""Of the processes that fork after the import. The program can write there; its exit code is
decided by its supervisor alone."""


def attempts() -> list[str]:
    """The forbidden attempts of this confined process so far, each once."""
    return _SHARED[:].partition(b"\0")[0].decode(errors="replace").splitlines()


def note_attempt(attempt: str) -> None:
    """Add an attempt, as long as there is space; the call that made it is still waiting."""
    line = " ".join(attempt.splitlines())
    text = f"{line}\n".encode(errors="replace")
    if line not in attempts() and _SHARED.tell() + len(text) < len(_SHARED):
        _SHARED.write(text)
