"""New simple statements as nodes that print their text.

libcst's own nodes would be made from the text only to print the same again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

__all__ = ["written"]

_COMPOUND = {"async", "class", "def", "for", "if", "match", "try", "while", "with"}
_WORD = re.compile(r"\w+")
_UNCLEAR = re.compile(r"[#;\r\f\\]|\n\s*\n|'''|\"\"\"")


@dataclass(frozen=True)
class _Written(cst.BaseSmallStatement):
    """A simple statement by its text."""

    text: str

    def _visit_and_replace_children(self, visitor: cst.CSTVisitorT) -> _Written:
        return self

    def _codegen_impl(self, state: Any, default_semicolon: bool = False) -> None:
        with state.record_syntactic_position(self):
            inner = state.default_newline + "".join(state.indent_tokens)
            state.add_token(self.text.replace("\n", inner))
        if default_semicolon:
            state.add_token("; ")


def written(lines: Sequence[str]) -> list[cst.BaseStatement]:
    """The statements of these lines if each is a simple one without a comment, else none."""
    if all(map(_is_simple, lines)):
        return [cst.SimpleStatementLine([_Written(line)]) for line in lines]
    return []


def _is_simple(line: str) -> bool:
    """Whether the text is for certain one simple statement: its lines end within brackets."""
    word = _WORD.match(line)
    return (
        word is not None
        and word[0] not in _COMPOUND
        and not _UNCLEAR.search(line)
        and line == line.rstrip()
        and ("\n" not in line or not ("'" in line or '"' in line))
        and all(depth > 0 for depth in _depths(line))
        and all(line.count(a) == line.count(b) for a, b in ("()", "[]", "{}"))
    )


def _depths(text: str) -> Iterator[int]:
    """How many brackets are open at the end of each line but the last."""
    depth = 0
    for line in text.split("\n")[:-1]:
        depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        yield depth
