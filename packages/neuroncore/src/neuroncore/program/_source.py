"""Texts that are no files, remembered so that errors can show their lines."""

from __future__ import annotations

import linecache
from itertools import count

REMEMBERED = 64  # texts; the oldest are forgotten, their errors then show no line

_number = count(1)
_paths: list[str] = []


def remember(text: str, what: str = "program") -> str:
    """A path under which `linecache` finds the lines of `text`."""
    path = f"<{what} {next(_number)}>"
    lines = [line + "\n" for line in text.splitlines()]
    linecache.cache[path] = (len(text), None, lines, path)  # no mtime: checkcache keeps it
    _paths.append(path)
    while len(_paths) > REMEMBERED:
        linecache.cache.pop(_paths.pop(0), None)
    return path
