"""The line of the original text for each line of the migrated text."""

from __future__ import annotations

from dataclasses import replace
from difflib import SequenceMatcher

from neuroncore.findings import Edit, Finding, Region
from nki_migrate.index import python_lines
from nki_migrate.index.matching import opcodes


class LineMap:
    """From lines of `after` to lines of `before`, both 1-based."""

    def __init__(self, before: str, after: str) -> None:
        old, new = python_lines(before), python_lines(after)
        self._line: dict[int, int] = {}
        self._same: set[int] = set()
        if old == new:
            self._identity = True
            return
        self._identity = False
        words, others = ([line.strip() for line in lines] for lines in (old, new))
        for tag, i1, i2, j1, j2 in opcodes(
            words, others, _is_inner
        ):  # a body may have moved into a loop
            for j in range(j1, j2):
                if tag == "equal":
                    self._line[j + 1] = i1 + (j - j1) + 1
                    self._same |= {j + 1} if old[i1 + (j - j1)] == new[j] else set()
                else:
                    self._line[j + 1] = min(i1 + (j - j1), max(i2 - 1, i1)) + 1
            if tag == "replace":
                self._map_headers(words[i1:i2], i1, others[j1:j2], j1)

    def _map_headers(self, old: list[str], i1: int, new: list[str], j1: int) -> None:
        """Loops keep their variable where the range is written anew."""
        one, other = ([_loop(w) or f"{n}" for n, w in enumerate(ws)] for ws in (old, new))
        other = [w if w.startswith("for ") else f"-{w}" for w in other]
        for i, j, size in SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks():
            self._line |= {j1 + j + k + 1: i1 + i + k + 1 for k in range(size)}

    def line(self, line: int) -> int:
        """The original line."""
        return line if self._identity else self._line.get(line, 1)

    def moved(self, finding: Finding) -> Finding:
        """The finding in original coordinates; edits of code that the tool wrote are left out."""
        if self._identity:
            return finding
        place = finding.region
        line, end_line = self.line(place.line), self.line(place.end_line)
        exact = {place.line, place.end_line} <= self._same and (
            end_line - line == place.end_line - place.line
        )
        if not exact:
            place = Region(place.path, line, 1, max(line, end_line), 1)
            return replace(finding, place=place, edits=())
        place = replace(place, line=line, end_line=end_line)
        return replace(finding, place=place, edits=tuple(self._edit(e) for e in finding.edits))

    def _edit(self, edit: Edit) -> Edit:
        return replace(edit, line=self.line(edit.line), end_line=self.line(edit.end_line))


def _is_inner(line: str) -> bool:
    """Whether a line says too little of its own: arguments and brackets of a call over lines."""
    return line.endswith(",") or not any(map(str.isalnum, line))


def _loop(line: str) -> str:
    """`for i in` of a loop's first line."""
    return line.partition(" in ")[0] if line.startswith("for ") else ""
