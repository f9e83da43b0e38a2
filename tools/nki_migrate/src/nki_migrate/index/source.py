"""A source text with positions: the bridge between `ast` offsets, characters and edits."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cached_property

from neuroncore.findings import Edit, Region, python_lines
from neuroncore.python_source import parse_python

Span = tuple[
    int, int, int, int
]  # line, column, end line, end column; 1-based characters, end exclusive


class Source:
    """One file's text, its tree, and the character span of every node."""

    def __init__(self, text: str, path: str = "<text>") -> None:
        self.text = text
        self.path = path
        self.tree = parse_python(text, path)
        self.lines = python_lines(text)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line))
        return starts

    @property
    def newline(self) -> str:
        """The line ending of the file's first line."""
        first = self.lines[0] if self.lines else ""
        return "\r\n" if first.endswith("\r\n") else "\n"

    def span(self, node: ast.AST) -> Span:
        """The characters that a node covers."""
        line, end_line = node.lineno, node.end_lineno or node.lineno  # type: ignore[attr-defined]
        start = self._characters(line, node.col_offset)  # type: ignore[attr-defined]
        end = self._characters(end_line, node.end_col_offset or 0)  # type: ignore[attr-defined]
        return line, start + 1, end_line, end + 1

    def region(self, node: ast.AST) -> Region:
        """The place of a node in this file."""
        return Region(self.path, *self.span(node))

    def segment(self, node: ast.AST) -> str:
        """The text of a node, exactly as written."""
        line, column, end_line, end_column = self.span(node)
        return self.text[self.offset(line, column) : self.offset(end_line, end_column)]

    def offset(self, line: int, column: int) -> int:
        """The index into `text` of a 1-based position."""
        return self._starts[line - 1] + column - 1

    def indentation(self, line: int) -> str:
        """The white space that a line begins with."""
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip())]

    def _characters(self, line: int, utf8_offset: int) -> int:
        text = self.lines[line - 1]
        if text.isascii():
            return utf8_offset
        return len(text.encode()[:utf8_offset].decode())


def apply_edits(source: Source, edits: Iterable[Edit]) -> str:
    """The text after all edits; equal edits count once, overlapping ones are an internal error."""
    pieces, position = [], 0
    for edit in sorted(set(edits)):
        start = source.offset(edit.line, edit.column)
        end = source.offset(edit.end_line, edit.end_column)
        assert start >= position, f"overlapping edits at {source.path}:{edit.line}:{edit.column}"
        pieces += [source.text[position:start], edit.text]
        position = end
    return "".join([*pieces, source.text[position:]])
