"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path


def write_whole(file: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a file beside `file` that takes its place when it is complete; a device or a
    pipe (/dev/null) stays what it is and gets the content.
    """
    if file.exists() and not file.is_file() and not file.is_dir():
        with tempfile.TemporaryDirectory() as folder:
            whole = Path(folder) / file.name
            write(whole)
            with whole.open("rb") as source, file.open("wb") as target:
                shutil.copyfileobj(source, target)
        return
    temporary = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        write(temporary)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
