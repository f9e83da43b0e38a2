"""Kernels are written whole or not at all, and over nothing that others wrote."""

from __future__ import annotations

from pathlib import Path

from neuroncore.commands.files import check_output, write_output

MARK = "# Tuned by nkigym"


def check_place(path: Path, force: bool) -> None:
    """Whether a kernel may be written there. Raises LaunchError."""
    check_output(path, "-o", MARK, force, "written by nkigym")


def write_kernel(path: Path, text: str) -> None:
    """The file with this text. Raises OutputError where it cannot be written."""
    write_output("nkigym", "-o", path, text)
