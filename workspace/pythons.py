"""The supported Pythons that really run on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SUPPORTED = ("3.11", "3.12", "3.13")
_SAY_VERSION = "import sys; print('{}.{}'.format(*sys.version_info))"


def candidates(version: str) -> Iterator[Path]:
    """Where `version` may be: this process, every directory of PATH, pyenv's own directory.

    A version manager puts shims on PATH that exist and do not run, before a Python that does.
    """
    yield Path(sys.executable)
    for directory in os.environ.get("PATH", "").split(os.pathsep):
        yield Path(directory or ".") / f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"))


def runs(python: Path, version: str) -> bool:
    """Whether `python` starts and is `version`."""
    try:
        command = (str(python), "-I", "-c", _SAY_VERSION)
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def find(version: str) -> Path | None:
    """The first candidate for `version` that runs, None when there is none."""
    return next((path for path in candidates(version) if runs(path, version)), None)
