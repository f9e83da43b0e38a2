"""Jupyter notebooks: the code cells as one Python text, and the migrated text back into its cells.

Only the strings of changed lines are written anew; every other byte of the file, outputs included,
stays. IPython's magics are `pass` while the text is migrated and come back as they were.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate
from typing import Any

from neuroncore.documents import parse_json
from neuroncore.findings import Finding, Region
from neuroncore.python_source import parse_python
from nki_migrate.engine.results import FileResult

SUFFIX = ".ipynb"

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_MAGIC = re.compile(r"^\s*(?:[%!?]|[\w.,*\[\]() ]+=\s*[%!])|\?\s*$")
_CELL_MAGIC = re.compile(r"\s*%%(\w+)")
_RUNS_PYTHON = {"time", "timeit", "capture", "prun", "debug"}  # their body is code of the notebook
_MARK, _MASK = "# nki-migrate cell ", "pass  # nki-migrate magic "


class NotebookError(Exception):
    """A file that is not a readable notebook, or code that does not go back into its cells."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its place among all cells, and the position of its source in the JSON text.

    `pieces` are the strings of the source with their spans, quotes included; `code` is what is
    for the source in the Python text, line by line, `masked` its lines that are magics.
    """

    number: int
    start: int
    end: int
    is_list: bool
    pieces: tuple[tuple[str, int, int], ...]
    code: str
    masked: tuple[tuple[str, str], ...]

    @property
    def source(self) -> str:
        """The source as the notebook shows it."""
        return "".join(text for text, _, _ in self.pieces)

    def offset(self, line: int, column: int, raw: str) -> int:
        """Where a place of the source, both 1-based, is in the JSON text."""
        starts = _line_starts(self.source)
        index = min(starts[min(line, len(starts)) - 1] + column - 1, len(self.source))
        for text, start, end in self.pieces:
            if index < len(text) or (text, start, end) == self.pieces[-1]:
                return min(_inside(raw, start + 1, index), end - 1)
            index -= len(text)
        return self.start


@dataclass(frozen=True)
class Notebook:
    """A notebook's JSON text and its code cells; `code` is the Python text of all of them."""

    raw: str
    cells: tuple[Cell, ...]

    @cached_property
    def code(self) -> str:
        """The cells, each below a comment that names it."""
        return "".join(f"{_MARK}{cell.number}\n{cell.code}" for cell in self.cells)

    @cached_property
    def _first_lines(self) -> list[int]:
        """The line of `code` on which each cell's mark stands."""
        counts = [cell.code.count("\n") + 1 for cell in self.cells]
        return [1, *(total + 1 for total in accumulate(counts))]

    def place(self, line: int) -> tuple[Cell, int] | None:
        """The cell of a line of `code`, and the line within it."""
        index = bisect_right(self._first_lines, line) - 1
        if index >= len(self.cells):
            return None
        return self.cells[index], max(line - self._first_lines[index], 1)

    def with_code(self, after: str) -> str:
        """The JSON text with migrated code in its cells. Raises NotebookError."""
        parts = list(self._parts(after))
        pieces, position = [], 0
        for cell, new in zip(self.cells, parts, strict=True):
            if new != cell.source:
                pieces += [self.raw[position : cell.start], self._value(cell, new)]
                position = cell.end
        raw = "".join([*pieces, self.raw[position:]])
        if [cell.source for cell in read_notebook(raw).cells] != [p for p in parts if p.strip()]:
            raise NotebookError("the migrated code does not go back into its cells")
        return raw

    def _parts(self, after: str) -> Iterator[str]:
        marks = [f"{_MARK}{cell.number}\n" for cell in self.cells]
        found = re.findall(rf"^{_MARK}\d+\n", after, re.MULTILINE)
        if found != marks:
            raise NotebookError("the migrated code moves between cells")
        rest = after
        for cell, follower in zip(self.cells, [*marks[1:], None], strict=True):
            rest = rest.partition(f"{_MARK}{cell.number}\n")[2]
            text = rest if follower is None else rest.partition(follower)[0]
            for mask, original in cell.masked:
                if text.count(f"{mask}\n") != 1:
                    raise NotebookError(f"a magic of cell {cell.number} would be lost")
                text = text.replace(f"{mask}\n", f"{original}\n")
            yield text if cell.source.endswith("\n") else text.removesuffix("\n")

    def _value(self, cell: Cell, new: str) -> str:
        """The JSON of a new source; lines that stay keep the very characters they had."""
        ascii_only = self.raw.isascii() and "\\u" in self.raw[cell.start : cell.end]
        if not cell.is_list:
            return json.dumps(new, ensure_ascii=ascii_only)
        old, lines = [text for text, _, _ in cell.pieces], new.splitlines(keepends=True)
        tokens: list[str] = []
        matcher = SequenceMatcher(None, old, lines, autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag == "equal":
                tokens += [self.raw[start:end] for _, start, end in cell.pieces[i1:i2]]
            else:
                tokens += [json.dumps(line, ensure_ascii=ascii_only) for line in lines[j1:j2]]
        before = self.raw[cell.start + 1 : cell.pieces[0][1]]
        after = self.raw[cell.pieces[-1][2] : cell.end - 1]
        between = f",{before or ' '}"
        if len(cell.pieces) > 1:
            between = self.raw[cell.pieces[0][2] : cell.pieces[1][1]]
        return f"[{before}{between.join(tokens)}{after}]"

    # -- results

    def result(self, found: FileResult) -> FileResult:
        """A result about `code` as one about the file: places are those in the JSON text."""
        same = found.after == self.code
        after = self.raw if same else self.with_code(found.after)
        findings = tuple(self._moved(finding) for finding in found.findings)
        kernels = tuple(
            replace(kernel, line=self._position(kernel.line, 1)[0]) for kernel in found.kernels
        )
        return replace(found, kernels=kernels, findings=findings, before=self.raw, after=after)

    def _moved(self, f: Finding) -> Finding:
        old = f.region
        cell = self.place(old.line)
        message = f"cell {cell[0].number}: {f.message}" if cell else f.message
        start = self._position(old.line, old.column)
        end = self._position(old.end_line, old.end_column)
        return replace(f, message=message, place=Region(old.path, *start, *end), edits=())

    def _position(self, line: int, column: int) -> tuple[int, int]:
        place = self.place(line)
        offset = place[0].offset(place[1], column, self.raw) if place else 0
        index = bisect_right(self._raw_starts, offset) - 1
        return index + 1, offset - self._raw_starts[index] + 1

    @cached_property
    def _raw_starts(self) -> list[int]:
        return _line_starts(self.raw)


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer(r"\n", text))]


def _inside(raw: str, start: int, count: int) -> int:
    """The offset after `count` characters of a JSON string whose content begins at `start`."""
    for _ in range(count):
        step = 1
        if raw[start] == "\\":
            step = 6 if raw[start + 1] == "u" else 2
            if re.match(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]", raw[start : start + 12]):
                step = 12
        start += step
    return start


# -- reading


def read_notebook(raw: str) -> Notebook:
    """The code cells of a notebook (nbformat 4), with their places. Raises NotebookError."""
    try:
        document = parse_json(raw)
    except ValueError as error:
        raise NotebookError(f"not a notebook: {error}") from None
    if not isinstance(document, dict) or not _are_cells(document.get("cells")):
        raise NotebookError("not a notebook of format 4: no list of cells (nbconvert makes one)")
    if not _is_python(document.get("metadata", {})):
        return Notebook(raw, ())
    cells = []
    for number, fields in enumerate(_items(raw, _member(raw, 0, "cells")), 1):
        members = dict(_members(raw, fields))
        kind = _DECODER.raw_decode(raw, members["cell_type"])[0] if "cell_type" in members else None
        if kind == "code" and "source" in members:
            cells.append(_cell(raw, number, members["source"]))
    return Notebook(raw, tuple(cell for cell in cells if cell is not None))


def _are_cells(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(cell, dict) for cell in found)


def _is_python(metadata: Any) -> bool:
    """Whether the metadata names no other language; what is not as documented names none."""
    names = (("kernelspec", "language"), ("language_info", "name"))
    tables = metadata if isinstance(metadata, dict) else {}
    found = [(tables.get(table), key) for table, key in names]
    named = [table.get(key) for table, key in found if isinstance(table, dict)]
    return all(name in (None, "python", "ipython") for name in named)


def _check_characters(source: str, number: int) -> None:
    try:
        source.encode()
    except UnicodeEncodeError:
        raise NotebookError(f"cell {number} has half of a surrogate pair alone") from None


def _cell(raw: str, number: int, start: int) -> Cell | None:
    """A cell that holds Python; None for an empty one and for another language's."""
    value, end = _DECODER.raw_decode(raw, start)
    if isinstance(value, list):
        starts = list(_items(raw, start))
        pieces = [
            (t, p, _DECODER.raw_decode(raw, p)[1]) for t, p in zip(value, starts, strict=True)
        ]
    else:
        pieces = [(value, start, end)]
    if not all(isinstance(text, str) for text, _, _ in pieces):
        raise NotebookError(f"the source of cell {number} is neither a string nor a list of them")
    source = "".join(text for text, _, _ in pieces)
    _check_characters(source, number)
    magic = _CELL_MAGIC.match(source)
    if not source.strip() or (magic and magic[1] not in _RUNS_PYTHON):
        return None
    code, masked = _masked(source, number)
    return Cell(number, start, end, isinstance(value, list), tuple(pieces), code, masked)


def _masked(source: str, number: int) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The source with magics as `pass`, as far as it takes to parse; (mask, original) of each."""
    lines = source.removesuffix("\n").split("\n")
    masked: list[tuple[str, str]] = []
    while (bad := _bad_line(lines)) is not None and _MAGIC.search(lines[bad]):
        last = bad
        while lines[last].endswith("\\") and last + 1 < len(lines):
            last += 1
        for index in range(bad, last + 1):
            indent = lines[bad][: len(lines[bad]) - len(lines[bad].lstrip())]
            mask = f"{indent}{_MASK}{number}.{index + 1}"
            masked.append((mask, lines[index]))
            lines[index] = mask
    return "".join(f"{line}\n" for line in lines), tuple(masked)


def _bad_line(lines: Sequence[str]) -> int | None:
    """The line, from 0, at which the lines stop being Python."""
    try:
        parse_python("".join(f"{line}\n" for line in lines))
    except SyntaxError as error:
        return min(max(error.lineno or 1, 1), len(lines)) - 1
    return None


# -- a JSON text by position: `json` gives values without positions


def _skip(raw: str, position: int) -> int:
    match = _SPACE.match(raw, position)
    return match.end() if match else position


def _members(raw: str, start: int) -> Iterator[tuple[str, int]]:
    """The keys of an object and where their values begin."""
    position = _skip(raw, start) + 1
    while raw[position := _skip(raw, position)] != "}":
        key, position = _DECODER.raw_decode(raw, position)
        position = _skip(raw, _skip(raw, position) + 1)
        yield key, position
        position = _skip(raw, _DECODER.raw_decode(raw, position)[1])
        position += raw[position] == ","


def _member(raw: str, start: int, key: str) -> int:
    return dict(_members(raw, start))[key]


def _items(raw: str, start: int) -> Iterator[int]:
    """Where the values of an array begin."""
    position = _skip(raw, start) + 1
    while raw[position := _skip(raw, position)] != "]":
        yield position
        position = _skip(raw, _DECODER.raw_decode(raw, position)[1])
        position += raw[position] == ","
