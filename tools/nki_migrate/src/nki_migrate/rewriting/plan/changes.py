"""A plan of changed statements, and its application to lines of text.

Lines suffice where each changed statement has lines of its own. What shares a line with something
else (`a; b`, `if c: a`), `try`, `match`, and loops around statements are left to the concrete
syntax tree (`application`): importing libcst costs 0.2 s.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Change:
    """The replacement of one statement.

    `lines` replaces a simple statement (None keeps it, an empty list removes it); for a
    compound statement `header` replaces its first line ("for i in range(n):") and the body
    has changes of its own. `before` are statements put in front, `comments` comment lines
    above all.
    """

    lines: list[str] | None = None
    header: str | None = None
    before: list[str] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    @property
    def touches(self) -> bool:
        """Whether anything is to be done."""
        return self.lines is not None or bool(self.header or self.before or self.comments)


@dataclass(frozen=True, slots=True)
class Loops:
    """Wrap the statements first … last of a function body into loops, `hoisted` in front."""

    function: ast.stmt
    first: int
    last: int
    headers: tuple[str, ...]
    hoisted: frozenset[int] = frozenset()


def statements_in_order(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """All statements below `body` in source order."""
    for statement in body:
        yield statement
        for inner in _bodies(statement):
            yield from statements_in_order(inner)


def _bodies(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    for name in ("body", "handlers", "orelse", "finalbody", "cases"):
        for item in getattr(statement, name, None) or ():
            if isinstance(item, ast.ExceptHandler | ast.match_case):
                yield item.body
            else:
                yield [item]


# -- lines

_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.FunctionDef, ast.ClassDef)
_COMPOUND = (*_BLOCKS, ast.AsyncFunctionDef, ast.Try, ast.TryStar, ast.Match)
_TODO = "# TODO(nki-migrate "
_UNCLEAR = re.compile(r"[#\r\f\\]|\n\s*\n|'''|\"\"\"")
_HEADER = re.compile(r"(if|for|with|while|def)\b")
_HEADER_END = re.compile(r":(\s*#[^'\"]*)?$")


class UnclearError(Exception):
    """The lines alone do not show how to apply the plan."""


def apply_to_lines(text: str, tree: ast.Module, changes: dict[ast.stmt, Change]) -> str | None:
    """The text with all changes made; None if that takes a syntax tree."""
    if "\f" in text or "\r" in text or "\t" in text:
        return None
    try:
        return _Applier(text, tree, changes).run()
    except UnclearError:
        return None


class _Applier:
    def __init__(self, text: str, tree: ast.Module, changes: dict[ast.stmt, Change]) -> None:
        self.lines = text.split("\n")
        self.tree, self.changes = tree, changes
        ordered = list(statements_in_order(tree.body))
        self.touched = {s for s in ordered if s in changes and changes[s].touches}
        self.unit = next((u for s in ordered if (u := self._indented_by(s))), "    ")

    def run(self) -> str:
        out, carried = self.block(self.tree.body, 0, "")
        last = max((s.end_lineno or 0 for s in self.tree.body), default=0)
        return "\n".join([*out, *(c for c in carried if c.strip()), *self.lines[last:]])

    def _indented_by(self, node: ast.stmt) -> str:
        """How much deeper the body of a statement is."""
        body = getattr(node, "body", None)
        if not isinstance(node, _COMPOUND) or not body or body[0].lineno == node.lineno:
            return ""
        return " " * (body[0].col_offset - node.col_offset)

    # -- blocks

    def block(
        self, nodes: Sequence[ast.stmt], start: int, indent: str
    ) -> tuple[list[str], list[str]]:
        """The new lines of statements whose block begins at a line; comments left at its end."""
        out: list[str] = []
        carried: list[str] = []
        for node in nodes:
            begin = _first_line(node) - 1
            if begin < start:  # two statements of one line
                raise UnclearError
            own, leading = self._leading(start, begin, indent)
            out += own
            new, carried = self._statement(node, leading, carried, indent)
            out += new
            start = node.end_lineno or 0
        return out, carried

    def _leading(self, start: int, begin: int, indent: str) -> tuple[list[str], list[str]]:
        """Lines in front of a statement: of the block before it, and its own."""
        lines = self.lines[start:begin]
        if any(x.strip() and not x.lstrip().startswith("#") for x in lines):
            raise UnclearError
        deeper = [i for i, x in enumerate(lines) if x.strip() and not _is_at(x, indent)]
        cut = deeper[-1] + 1 if deeper else 0
        return lines[:cut], lines[cut:]

    def _statement(
        self, node: ast.stmt, leading: list[str], carried: list[str], indent: str
    ) -> tuple[list[str], list[str]]:
        inside = [n for n in statements_in_order([node]) if n in self.touched]
        if not inside:
            first, last = _first_line(node) - 1, node.end_lineno or 0
            return [*_joined(carried, leading), *self.lines[first:last]], []
        change = self.changes.get(node) or Change()
        if isinstance(node, _COMPOUND):
            new = self._compound(node, change, indent)
            return [*carried, *_commented(leading, change.comments, indent, False), *new], []
        return self._simple(node, change, leading, carried, indent)

    def _simple(
        self, node: ast.stmt, change: Change, leading: list[str], carried: list[str], indent: str
    ) -> tuple[list[str], list[str]]:
        comment = self._comment_behind(node, indent)
        resolved = change.lines is not None
        above = [*carried, *_commented(leading, change.comments, indent, resolved)]
        first, last = node.lineno - 1, node.end_lineno or 0
        new = self._rendered(change.before, indent)
        if not resolved:
            return [*above, *new, *self.lines[first:last]], []
        new += self._rendered(change.lines or [], indent)
        if not new:
            return [], [*(x for x in above[:1] if not x.strip()), *filter(str.strip, above)]
        if comment and _HEADER.match([*change.before, *(change.lines or ())][-1]):
            return [*above, indent + comment.lstrip(), *new], []
        return [*above, *new[:-1], new[-1] + comment], []

    def _comment_behind(self, node: ast.stmt, indent: str) -> str:
        """The comment at the end of a statement's last line, with the space before it."""
        first, last = self.lines[node.lineno - 1], self.lines[(node.end_lineno or 1) - 1]
        rest = last.encode()[node.end_col_offset or 0 :].decode()
        if first.encode()[: node.col_offset].decode() != indent or rest.strip()[:1] not in {
            "",
            "#",
        }:
            raise UnclearError
        return rest if rest.strip() else ""

    # -- compound statements

    def _compound(self, node: ast.stmt, change: Change, indent: str) -> list[str]:
        if not isinstance(node, _BLOCKS):
            raise UnclearError
        begin, start = _first_line(node) - 1, self._body_start(node.body)
        if not self.lines[begin].startswith(indent) or start <= begin:
            raise UnclearError
        header = self._header(self.lines[begin:start], change.header, indent)
        before = self._rendered(change.before, indent)
        out = [*before, *header, *self._suite(node.body, start, node.col_offset)]
        orelse = getattr(node, "orelse", None)
        return [*out, *self._tail(node, orelse, indent)] if orelse else out

    def _header(self, lines: list[str], new: str | None, indent: str) -> list[str]:
        """The header of a block, or a new one with the comment of the old one."""
        if new is None:
            return lines
        found = _HEADER_END.search(lines[-1])
        if found is None or "#" in lines[-1][: found.start()]:
            raise UnclearError
        word = "el" if lines[0].startswith(f"{indent}elif") else ""
        header = self._rendered([word + new], indent)
        return [*header[:-1], header[-1] + (found[1] or "")]

    def _body_start(self, body: Sequence[ast.stmt]) -> int:
        """The line after the header of a block: comments and blank lines are the body's."""
        at = _first_line(body[0]) - 1
        while at and (
            not self.lines[at - 1].strip() or self.lines[at - 1].lstrip().startswith("#")
        ):
            at -= 1
        return at

    def _suite(self, body: Sequence[ast.stmt], start: int, outer: int) -> list[str]:
        indent = " " * body[0].col_offset
        if len(indent) <= outer:
            raise UnclearError
        out, carried = self.block(body, start, indent)
        if not any(x.strip() and not x.lstrip().startswith("#") for x in out):
            out.append(f"{indent}pass")
        return [*out, *(c for c in carried if c.strip())]

    def _tail(self, node: ast.stmt, orelse: Sequence[ast.stmt], indent: str) -> list[str]:
        """`else:` or `elif` behind a body, with its block."""
        body_end = node.body[-1].end_lineno or 0  # type: ignore[attr-defined]
        first = orelse[0]
        if isinstance(first, ast.If) and self.lines[first.lineno - 1].startswith(f"{indent}elif"):
            own, leading = self._leading(body_end, first.lineno - 1, indent)
            new, _ = self._statement(first, leading, [], indent)
            return [*own, *new]
        start = self._body_start(orelse)
        between = self.lines[body_end:start]
        if not between or not re.fullmatch(rf"{indent}else:\s*(#.*)?", between[-1]):
            raise UnclearError
        if any(x.strip() and not x.lstrip().startswith("#") for x in between[:-1]):
            raise UnclearError
        return [*between, *self._suite(orelse, start, len(indent))]

    # -- text

    def _rendered(self, statements: Sequence[str], indent: str) -> list[str]:
        """Statements as lines; deeper blocks take the indentation of the file."""
        return [line for text in statements for line in self._lines_of(text, indent)]

    def _lines_of(self, text: str, indent: str) -> list[str]:
        if "\n" in text and (_UNCLEAR.search(text) or "'" in text or '"' in text):
            raise UnclearError
        out, depth, block = [], 0, 0
        for line in text.split("\n"):
            if not depth:
                block = (len(line) - len(line.lstrip(" "))) // 4
            out.append(indent + self.unit * block + line[4 * block :])
            depth += sum(map(line.count, "([{")) - sum(map(line.count, ")]}"))
        return out


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", ())
    return min([node.lineno, *(d.lineno for d in decorators)])


def _is_at(line: str, indent: str) -> bool:
    return line.startswith(indent) and not line[len(indent) :].startswith(" ")


def _joined(carried: list[str], leading: list[str]) -> list[str]:
    """Comments of removed statements, and a statement's own lines: one blank line between."""
    if carried and leading and not leading[0].strip() and not carried[-1].strip():
        carried = carried[:-1]
    return [*carried, *leading]


def _commented(leading: list[str], comments: list[str], indent: str, resolved: bool) -> list[str]:
    """A statement's leading lines, then its comments; TODOs that are resolved go."""
    kept, said = [], set[str]()
    for line in leading:
        text = line.strip()
        is_todo = text.startswith(_TODO)
        if not (is_todo and resolved):
            kept.append(line)
            said |= {text.partition(":")[0]} if is_todo else set()
    return [*kept, *(indent + c for c in comments if c.partition(":")[0] not in said)]
