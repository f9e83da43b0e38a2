"""The source files of a page, and positions in them."""

from __future__ import annotations

import linecache

from neuroncore.source_location import Place


class Sources:
    """Files by number, each with its lines."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def at(self, place: Place | None) -> list[int] | None:
        """The number of the file and the line, for a document."""
        return None if place is None else self.at_line(place.file, place.line)

    def at_line(self, path: str, line: int) -> list[int]:
        """The same, of a line of a file."""
        return [self._numbers.setdefault(path, len(self._numbers)), line]

    def section(self) -> list[dict[str, object]]:
        """Paths and lines, as the files are now; none of a file that cannot be read any more."""
        for path in self._numbers:
            linecache.checkcache(path)
        return [
            {"path": path, "lines": [line.rstrip("\n") for line in linecache.getlines(path)]}
            for path in self._numbers
        ]
