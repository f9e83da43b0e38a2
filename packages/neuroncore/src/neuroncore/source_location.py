"""Places in the user's kernel, and the caret under them."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from types import CodeType, FrameType

from neuroncore.findings.finding import Region

OUR_PACKAGES = frozenset(
    {
        "neuroncore", "nki_dtypes", "nki_runtime", "nki_beta1", "nki_beta2", "nkigen_lite",
        "tokenplan", "nkigym", "nki_scope", "nki_migrate",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """A range of a source file: 1-based line, 0-based columns as Python's own positions."""

    file: str
    line: int
    column: int = 0
    end_line: int | None = None
    end_column: int | None = None

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column + 1}"

    @property
    def region(self) -> Region:
        """The same range in characters."""
        end_line = self.end_line or self.line
        end = self.column if self.end_column is None else self.end_column
        columns = [
            _characters(linecache.getline(self.file, line), column) + 1
            for line, column in ((self.line, self.column), (end_line, end))
        ]
        return Region(self.file, self.line, columns[0], end_line, columns[1])

    def excerpt(self, operand: str | None = None, position: int | None = None) -> list[str]:
        """The source line and a caret; at the argument of that name or position if it is found."""
        target = self._argument(operand, position) or self
        text = linecache.getline(target.file, target.line).rstrip("\n")
        if not text.strip():
            return []
        indent = len(text) - len(text.lstrip())
        start = max(_characters(text, target.column), indent)
        single_line = target.end_column is not None and target.end_line in (None, target.line)
        end = target.end_column if single_line else None
        stop = _characters(text, end) if end else len(text)
        width = max(1, stop - start)
        return ["    " + text[indent:], "    " + " " * (start - indent) + "^" * width]

    def _argument(self, operand: str | None, position: int | None) -> Place | None:
        call = self._call() if operand else None
        if call is None:
            return None
        for keyword in call.keywords:
            if keyword.arg == operand:
                return self._at(keyword.value)
        given = [] if position is None else call.args[: position + 1]
        if len(given) - 1 != position or any(isinstance(a, ast.Starred) for a in given):
            return None
        return self._at(given[-1])

    def _call(self) -> ast.Call | None:
        if self.end_line is None or self.end_column is None:
            return None
        lines = [linecache.getline(self.file, n) for n in range(self.line, self.end_line + 1)]
        if not all(lines):
            return None
        # Python's columns count UTF-8 bytes; pad so that nodes keep their columns.
        source = "".join(lines).encode()
        start = self.column
        end = len(b"".join(line.encode() for line in lines[:-1])) + self.end_column
        try:
            tree = ast.parse(b"(" + source[start:end] + b")", mode="eval")
        except SyntaxError:
            return None
        return tree.body if isinstance(tree.body, ast.Call) else None

    def _at(self, node: ast.expr) -> Place:
        shift = self.column - 1 if node.lineno == 1 else 0
        end_shift = self.column - 1 if node.end_lineno == 1 else 0
        end_line = node.end_lineno or node.lineno
        return Place(
            self.file,
            self.line + node.lineno - 1,
            node.col_offset + shift,
            self.line + end_line - 1,
            None if node.end_col_offset is None else node.end_col_offset + end_shift,
        )


def _characters(text: str, num_bytes: int) -> int:
    """A column in characters; Python counts UTF-8 bytes."""
    return len(text.encode()[:num_bytes].decode(errors="ignore"))


def find_place(passed: int = 0) -> Place | None:
    """The innermost frame of the current call stack that is neither this project's code nor
    NumPy's nor the machinery of `with`; `passed` frames, the caller's first, are known to be
    ours."""
    frame = kernel_frame(sys._getframe(1 + passed))
    return None if frame is None else place_of(frame)


def kernel_frame(frame: FrameType | None) -> FrameType | None:
    """The first of a frame and its callers that find_place does not pass by."""
    while frame is not None:
        ours = OURS_BY_NAME.get(frame.f_globals.get("__name__", ""))
        if not (is_ours(frame) if ours is None else ours):
            return frame
        frame = frame.f_back
    return None


def is_ours(frame: FrameType) -> bool:
    """Whether find_place passes by what runs in a frame."""
    name = frame.f_globals.get("__name__", "")
    ours = OURS_BY_NAME.get(name)
    if ours is None:
        ours = OURS_BY_NAME[name] = name.partition(".")[0] in _PASSED
    return ours


_PASSED = OUR_PACKAGES | {"contextlib", "numpy"}
OURS_BY_NAME: dict[str, bool] = {}
"""Whether modules of these names are passed by: this project's code, NumPy's, contextlib's."""


def place_of(frame: FrameType, instruction: int | None = None) -> Place:
    """The range of source that a frame is executing, or was at bytecode offset `instruction`."""
    return place_in(
        frame.f_code, frame.f_lasti if instruction is None else instruction, frame.f_lineno
    )


def place_in(code: CodeType, at: int, line: int | None = None) -> Place:
    """The range of source at a bytecode offset, or `line` where the code has no columns."""
    known = _places.get((id(code), at))
    if known is None or known[0] is not code:
        if len(_places) >= _PLACES_KEPT:
            _places.clear()
        place = _place_in(code, at, code.co_firstlineno if line is None else line)
        known = _places[id(code), at] = code, place
    return known[1]


_places: dict[tuple[int, int], tuple[CodeType, Place]] = {}
"""What was found before, by id of the code, which the entry keeps alive, and bytecode offset."""
_PLACES_KEPT = 1 << 14


def _place_in(code: CodeType, at: int, current_line: int) -> Place:
    line, end_line, column, end_column = _position(code, at // 2) or (None, None, None, None)
    if line is None or column is None:
        return Place(code.co_filename, current_line)
    return Place(code.co_filename, line, column, end_line, end_column)


Position = tuple[int | None, int | None, int | None, int | None]


def _position(code: CodeType, index: int) -> Position | None:
    """The range of one instruction of a code.

    They are read from the first on: a long function that runs from top to bottom is read once.
    """
    kept = _readers.pop(id(code), None)
    if kept is None or kept[0] is not code or kept[2] > index:
        positions = (each for each in code.co_positions())  # the iterator of 3.11 has no class
        kept = code, positions, 0
    _, positions, begin = kept
    found = next(islice(positions, index - begin, None), None)
    if len(_readers) >= _READERS_KEPT:
        _readers.clear()
    _readers[id(code)] = code, positions, index + 1
    return found


_readers: dict[int, tuple[CodeType, Iterator[Position], int]] = {}
"""By id of a code, which the entry keeps alive: its positions, and the one that comes next."""
_READERS_KEPT = 64
