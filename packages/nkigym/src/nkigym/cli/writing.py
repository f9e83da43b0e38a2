"""Kernels are written whole or not at all, and over nothing that others wrote."""

from __future__ import annotations

from pathlib import Path

from neuroncore.errors import LaunchError

MARK = "# Tuned by nkigym"


def check_place(path: Path, force: bool) -> None:
    """Whether a kernel may be written there. Raises LaunchError."""
    if not path.parent.is_dir():
        raise LaunchError(f"-o {path}: no such folder {path.parent}")
    if path.is_dir():
        raise LaunchError(f"-o {path} is a folder", expected="a file to write")
    if path.is_file() and not force and not _is_ours(path):
        raise LaunchError(
            f"-o {path} is there and was not written by nkigym",
            expected=f"no file, or one of {MARK!r}", hint="--force writes over it",
        )  # fmt: skip


def write_kernel(path: Path, text: str) -> None:
    """The file with this text. Raises LaunchError where it cannot be written."""
    from nkigen_lite.cli.writing import write_whole

    try:
        write_whole(path, text)
    except OSError as wrong:
        raise LaunchError(f"-o {path} cannot be written: {wrong.strerror}") from None
    except RuntimeError as wrong:  # a link that leads to itself
        raise LaunchError(f"-o {path} cannot be written: {wrong}") from None


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MARK)) == MARK.encode()
