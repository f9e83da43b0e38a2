"""Kernels are written whole or not at all, and over nothing that others wrote."""

from __future__ import annotations

import argparse
import os
from itertools import combinations
from pathlib import Path

from neuroncore.commands.files import check_output, check_writable, write_output
from neuroncore.errors import OptionError
from nkigym.store.store import is_store

MARK = "# Tuned by nkigym"
_WRITTEN = {"output": "-o", "fit": "--fit", "report": "--report"}
_USED = {"store": "the store", "kernel": "the kernel"}


def check_files(given: argparse.Namespace) -> None:
    """Whether the files that options name are different ones, and the ones to write not stores.

    Raises OptionError.
    """
    named = [
        (option, Path(file))
        for name, option in (_WRITTEN | _USED).items()
        if (file := getattr(given, name, None)) is not None
    ]
    for option, file in named:
        if option in _WRITTEN.values() and is_store(file):
            raise OptionError(f"{option} {file} is a store", expected="another file")
        if option in ("--fit", "--report"):
            check_writable(file, option)
    for (option, file), (other, same) in combinations(named, 2):
        if option in _WRITTEN.values() and _real(file) == _real(same):
            raise OptionError(f"{option} {file} is {other} as well", expected="another file")


def _real(file: Path) -> str:
    """Its path; of a function's name, that of its file."""
    where, _, _ = str(file).partition(".py:")
    return os.path.realpath(file if where == str(file) else f"{where}.py")


def check_place(path: Path, force: bool) -> None:
    """Whether a kernel may be written there. Raises LaunchError."""
    check_output(path, "-o", MARK, force, "written by nkigym")


def write_kernel(path: Path, text: str) -> None:
    """The file with this text. Raises OutputError where it cannot be written."""
    write_output("nkigym", "-o", path, text)
