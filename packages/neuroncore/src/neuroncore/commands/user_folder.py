"""The folder of a user's file on `sys.path`, one at a time, with the modules that are from it.

Two files that import modules of one name, each from its own folder, have their own ones.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


class _Entry(str):
    """The folder, on `sys.path`."""

    before: frozenset[str]
    """Modules that were there before its own."""
    added: frozenset[str]
    """It, and what its file has added to `sys.path`."""


@contextmanager
def user_folder(folder: str) -> Iterator[None]:
    """Load a file or module with its folder first on `sys.path`, also afterwards, until the next
    one is loaded.
    """
    leave_user_folder()
    entry, path = _Entry(folder), set(sys.path)
    entry.before, entry.added = frozenset(sys.modules), frozenset({folder})
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        entry.added |= {*map(str, sys.path)} - path


def leave_user_folder() -> None:
    """Drop the folder, and the modules that were imported from it."""
    for name in [*user_modules()]:
        del sys.modules[name]
    for entry in _entries():
        others = [e for e in sys.path if e is not entry]
        sys.path[:] = [e for e in others if e == entry or e not in entry.added]


def user_modules() -> Iterator[str]:
    """Names of the modules that were imported from the folder."""
    for entry in _entries():
        folders = {*map(os.path.abspath, entry.added)}
        for name in [*sys.modules]:
            top = name.partition(".")[0]
            if top not in entry.before and folders.intersection(_folders(sys.modules.get(top))):
                yield name


def _entries() -> list[_Entry]:
    return [entry for entry in sys.path if isinstance(entry, _Entry)]


def _folders(module: ModuleType | None) -> Iterator[str]:
    """Where a module or package of the top level was found."""
    places = getattr(module, "__path__", None) or [getattr(module, "__file__", None)]
    yield from (os.path.dirname(place) for place in places if place)  # noqa: PTH120


def our_command(module: str) -> tuple[str, ...]:
    """Python with the function `main` of a module of ours, for a child process.

    `python -m` would import the modules of the working folder first.
    """
    start = f"import sys; sys.flags.safe_path or sys.path.__setitem__(0, {os.devnull!r})"
    return sys.executable, "-c", f"{start}; from {module} import main; sys.exit(main())"
