"""Reading files of a folder in which the code of a user has written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_MOST_BYTES = 8 << 30
_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


def read_regular(path: Path, last: int = _MOST_BYTES) -> bytes:
    """The last bytes of a file. Raises OSError, and ValueError for a pipe, a device or a file that
    is larger than any of ours; a link is not followed, as it may lead to something without end.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | _FLAGS), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
            raise ValueError(f"{path} is not a file of a run")
        file.seek(max(0, found.st_size - last))
        return file.read(min(last, found.st_size))
