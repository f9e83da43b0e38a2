"""Kernels are written whole or not at all, and over nothing that others wrote."""

from __future__ import annotations

from pathlib import Path

from neuroncore.commands.files import check_output, write_output
from neuroncore.errors import LaunchError

MARK = "# Tuned by nkigym"


def check_place(path: Path, force: bool) -> None:
    """Whether a kernel may be written there. Raises LaunchError."""
    check_output(path, "-o", MARK, force, "written by nkigym")


def write_kernel(path: Path, text: str) -> None:
    """The file with this text. Raises LaunchError where it cannot be written."""
    try:
        write_output("nkigym", "-o", path, text)
    except OSError as wrong:
        raise LaunchError(f"-o {path} cannot be written: {wrong.strerror}") from None
    except RuntimeError as wrong:  # a link that leads to itself
        raise LaunchError(f"-o {path} cannot be written: {wrong}") from None
