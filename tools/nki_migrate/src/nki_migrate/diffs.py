"""A unified diff of one result, as `git apply` and `patch -p1` read it."""

from __future__ import annotations

import difflib
import re
from pathlib import PurePath

from nki_migrate.findings import FileResult

_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # only \n ends a line of a diff
_NO_NEWLINE = "\n\\ No newline at end of file\n"


def unified_diff(result: FileResult) -> str:
    """The change of a file; empty when there is none."""
    if result.before == result.after:
        return ""
    path = PurePath(result.path).as_posix().lstrip("/")
    lines = difflib.unified_diff(
        _LINE.findall(result.before), _LINE.findall(result.after), f"a/{path}", f"b/{path}"
    )
    return "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in lines)
