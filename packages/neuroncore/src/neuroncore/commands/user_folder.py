"""The folder of a user's file on `sys.path`, one at a time, with the modules that are from it.

Two files that import modules of one name, each from its own folder, have their own ones. Imports of
other code do not see the folder where they find a module without it: an `html.py` beside a kernel
is that of the kernel alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib.machinery import ModuleSpec, PathFinder
from types import FrameType, ModuleType
from typing import Any


class _Entry(str):
    """The folder, on `sys.path`."""

    before: frozenset[str]
    """Modules that were there before its own."""
    added: frozenset[str]
    """It, and what its file has added to `sys.path`."""
    modules: dict[str, ModuleType]
    path: list[str]
    """Its modules and what it has added, since it was left."""


class _OthersFirst:
    """Finds modules for code that is not of the folder, first without the folder."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See importlib.abc.MetaPathFinder; None leaves the module to the finders behind."""
        entry = _entry()
        added = frozenset() if entry is None else entry.added
        if path is not None or not added or _owner(_importer(sys._getframe(1))) in added:
            return None
        return PathFinder.find_spec(name, [each for each in sys.path if each not in added])


def _importer(frame: FrameType | None) -> str:
    """The file of the code that imports a module."""
    while frame is not None:
        file = frame.f_code.co_filename
        if "importlib" not in file:
            return os.path.abspath(file)  # noqa: PTH100
        frame = frame.f_back
    return ""


def _owner(file: str) -> str:
    """The entry of sys.path that a file is in, the innermost of several."""
    return max((e for e in sys.path if e and file.startswith(e + os.sep)), key=len, default="")


@contextmanager
def user_folder(folder: str) -> Iterator[None]:
    """Load a file or module with its folder first on `sys.path`, also afterwards, until the next
    one is loaded.
    """
    leave_user_folder()
    entry = _Entry(folder)
    entry.before, entry.added = frozenset(sys.modules), frozenset({folder})
    sys.path.insert(0, entry)
    if _OthersFirst not in sys.meta_path:
        sys.meta_path.insert(0, _OthersFirst)
    with _noting_what_is_added(entry):
        yield


@contextmanager
def _noting_what_is_added(entry: _Entry) -> Iterator[None]:
    path = set(sys.path)
    try:
        yield
    finally:
        entry.added |= {*map(str, sys.path)} - path


def leave_user_folder() -> None:
    """Drop the folder, and the modules that were imported from it."""
    entry = _entry()
    if entry is not None:
        entry.modules = {name: sys.modules.pop(name) for name in [*_modules_of(entry)]}
        others = [e for e in sys.path if e is not entry]
        entry.path = [e for e in others if e != entry and e in entry.added]
        sys.path[:] = [e for e in others if e == entry or e not in entry.added]


def in_its_folder(load: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """The function that `load` finds; where that loads a file, each call has the folder and its
    modules again, whichever were loaded meanwhile.
    """
    before, function = _entry(), load()
    entry = _entry()
    if entry is None or entry is before:
        return function

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        with _again(entry):
            return function(*given, **named)

    return call


@contextmanager
def _again(entry: _Entry) -> Iterator[None]:
    """With a folder that may have been left, then with the one that was there before."""
    before = _entry()
    _return_to(entry)
    try:
        with _noting_what_is_added(entry):
            yield
    finally:
        _return_to(before)


def _return_to(entry: _Entry | None) -> None:
    if entry is not _entry():
        leave_user_folder()
        if entry is not None:
            sys.path[:0] = [entry, *entry.path]
            sys.modules.update(entry.modules)


def user_modules() -> Iterator[str]:
    """Names of the modules that were imported from the folder."""
    entry = _entry()
    return iter(()) if entry is None else _modules_of(entry)


def _modules_of(entry: _Entry) -> Iterator[str]:
    folders = {*map(os.path.abspath, entry.added)}
    for name in [*sys.modules]:
        top = name.partition(".")[0]
        if top not in entry.before and folders.intersection(_folders(sys.modules.get(top))):
            yield name


def _entry() -> _Entry | None:
    return next((entry for entry in sys.path if isinstance(entry, _Entry)), None)


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
