"""Applying a plan of changed statements to the concrete syntax tree (libcst).

Statements of `ast` and of libcst come in the same order, so the n-th of one is the n-th of the
other: no position metadata and no visitor is needed, and what is not in the plan is not
rebuilt.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst

from nki_migrate.rewriting.plan.changes import Change, Loops, statements_in_order


def apply_plan(
    text: str, tree: ast.Module, changes: dict[ast.stmt, Change], loops: Sequence[Loops] = ()
) -> str:
    """The text with all changes made; everything else byte for byte as it was."""
    module = cst.parse_module(text)
    return _Applier(module, tree, changes, {x.function: x for x in loops}).run().code


_Line = cst.SimpleStatementLine | cst.BaseCompoundStatement


class _Applier:
    def __init__(
        self,
        module: cst.Module,
        tree: ast.Module,
        changes: dict[ast.stmt, Change],
        loops: dict[ast.stmt, Loops],
    ) -> None:
        self.module, self.tree, self.changes, self.loops = module, tree, changes, loops
        self.touched = {
            s
            for s in statements_in_order(tree.body)
            if (s in changes and changes[s].touches) or s in loops
        }

    def run(self) -> cst.Module:
        body, _ = self.block(self.module.body, list(self.tree.body), [])
        return self.module.with_changes(body=body)

    # -- statement lists

    def block(
        self,
        lines: Sequence[cst.BaseStatement],
        nodes: list[ast.stmt],
        carried: list[cst.EmptyLine],
    ) -> tuple[list[cst.BaseStatement], list[cst.EmptyLine]]:
        """The new statements of a block, and comment lines left over at its end."""
        out: list[cst.BaseStatement] = []
        position = 0
        for line in lines:
            count = len(line.body) if isinstance(line, cst.SimpleStatementLine) else 1
            here = nodes[position : position + count]
            position += count
            new, carried = self.line(line, here, carried)
            out += new
        return out, carried

    def line(
        self, line: cst.BaseStatement, nodes: list[ast.stmt], carried: list[cst.EmptyLine]
    ) -> tuple[list[cst.BaseStatement], list[cst.EmptyLine]]:
        if not self._is_touched(nodes):
            return [_with_leading(line, carried)], []
        if not isinstance(line, cst.SimpleStatementLine):
            return self._compound(line, nodes[0], carried)
        new: list[cst.BaseStatement] = []
        comments: list[str] = []
        for small, node in zip(line.body, nodes, strict=True):
            made = self._simple(small, node)
            if new and made:  # several statements of one line: each has its comments above it
                own = [_comment(c) for c in self._change(node).comments]
                made[0] = _with_leading(made[0], own)
            elif not new:
                comments += self._change(node).comments
            new += made
        resolved = all(self._change(n).lines is not None for n in nodes)
        leading = [*carried, *_with_comments(line.leading_lines, comments, resolved)]
        if not new:
            return [], _kept_when_removed(leading, line.trailing_whitespace)
        new[0] = _with_leading(_bare(new[0]), leading)
        return _with_trailing(new, line.trailing_whitespace), []

    def _is_touched(self, nodes: list[ast.stmt]) -> bool:
        return any(n in self.touched for n in statements_in_order(nodes))

    def _change(self, node: ast.stmt) -> Change:
        return self.changes.get(node) or Change()

    def _simple(self, small: cst.BaseSmallStatement, node: ast.stmt) -> list[cst.BaseStatement]:
        change = self._change(node)
        before = self.parse(change.before)
        if change.lines is None:
            kept = small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
            return [*before, cst.SimpleStatementLine([kept])]
        return [*before, *self.parse(change.lines)]

    def parse(self, lines: list[str]) -> list[cst.BaseStatement]:
        """Statements from text; deeper blocks take the module's own indentation."""
        if not lines:
            return []
        return written(lines) or list(cst.parse_module("\n".join(lines) + "\n").body)

    # -- compound statements

    def _compound(
        self, line: cst.BaseStatement, node: ast.stmt, carried: list[cst.EmptyLine]
    ) -> tuple[list[cst.BaseStatement], list[cst.EmptyLine]]:
        change = self._change(node)
        new = self._with_inner(line, node)
        if change.header is not None:
            new = _with_header(new, self.parse([f"{change.header} pass"])[0])
        leading = [*carried, *_with_comments(_leading(line), change.comments, False)]
        before = self.parse(change.before)
        if before:
            before[0] = _with_leading(before[0], leading)
            leading = []
        return [*before, _with_leading(_bare(new), leading)], []

    def _with_inner(self, line: cst.CSTNode, node: ast.stmt | ast.ExceptHandler) -> cst.CSTNode:
        """A compound statement with all its suites rewritten."""
        if isinstance(node, ast.Match):
            pairs = zip(line.cases, node.cases, strict=True)  # type: ignore[attr-defined]
            cases = [c.with_changes(body=self.suite(c.body, n.body, n)) for c, n in pairs]
            return line.with_changes(cases=cases)
        body = self.suite(line.body, list(node.body), node)  # type: ignore[attr-defined]
        updates: dict[str, object] = {"body": body}
        if isinstance(node, ast.Try | ast.TryStar):
            updates["handlers"] = [
                self._with_inner(h, n) if self._is_touched(n.body) else h
                for h, n in zip(line.handlers, node.handlers, strict=True)  # type: ignore[attr-defined]
            ]
            updates["finalbody"] = self._tail(getattr(line, "finalbody", None), node.finalbody)
        orelse = getattr(line, "orelse", None)
        if orelse is not None:
            updates["orelse"] = self._tail(orelse, node.orelse)  # type: ignore[union-attr]
        return line.with_changes(**updates)

    def _tail(self, tail: cst.CSTNode | None, nodes: list[ast.stmt]) -> cst.CSTNode | None:
        if tail is None or not self._is_touched(nodes):
            return tail
        if isinstance(tail, cst.If):  # elif: the test is an expression, only its suites change
            return self._elif(tail, nodes[0])
        return tail.with_changes(body=self.suite(tail.body, nodes, None))  # type: ignore[attr-defined]

    def _elif(self, line: cst.If, node: ast.stmt) -> cst.CSTNode:
        """`elif` is a statement of its own in both trees; its test may change."""
        change = self._change(node)
        leading = _with_comments(line.leading_lines, change.comments, False)
        new = self._with_inner(line, node).with_changes(leading_lines=leading)
        if change.header is None:
            return new
        parsed = self.parse([f"{change.header} pass"])[0]
        return new.with_changes(test=parsed.test)  # type: ignore[attr-defined]

    def suite(
        self, suite: cst.BaseSuite, nodes: list[ast.stmt], owner: ast.AST | None
    ) -> cst.BaseSuite:
        loops = self.loops.get(owner) if isinstance(owner, ast.stmt) else None
        if loops is None and not self._is_touched(nodes):
            return suite
        if isinstance(suite, cst.SimpleStatementSuite):
            suite = cst.IndentedBlock([cst.SimpleStatementLine(suite.body)])
        assert isinstance(suite, cst.IndentedBlock)
        if loops is not None:
            return self._wrapped(suite, nodes, loops)
        body, carried = self.block(suite.body, nodes, [])
        return _finished(suite, body, carried)

    def _wrapped(
        self, suite: cst.IndentedBlock, nodes: list[ast.stmt], loops: Loops
    ) -> cst.IndentedBlock:
        """A function body with a range of its statements moved into new loops."""
        head, inner, tail, position = [], [], [], 0
        carried: list[cst.EmptyLine] = []
        for line in suite.body:
            count = len(line.body) if isinstance(line, cst.SimpleStatementLine) else 1
            new, carried = self.line(line, nodes[position : position + count], carried)
            if position < loops.first or position in loops.hoisted:
                head += new
            elif position <= loops.last:
                inner += new
            else:
                tail += new
            position += count
        nest = inner
        for header in reversed(loops.headers):
            loop = self.parse([f"{header}\n    pass"])[0]
            nest = [loop.with_changes(body=cst.IndentedBlock(nest))]
        lead, first = _split_blank(inner[0])
        inner[0] = first
        nest[0] = _with_leading(nest[0], lead)
        return _finished(suite, [*head, *nest, *tail], carried)


def _leading(line: cst.BaseStatement) -> Sequence[cst.EmptyLine]:
    return line.leading_lines  # type: ignore[attr-defined]


def _split_blank(line: cst.BaseStatement) -> tuple[list[cst.EmptyLine], cst.BaseStatement]:
    """Leading blank lines of a statement, apart from the comments that belong to it."""
    lines = list(line.leading_lines)  # type: ignore[attr-defined]
    blank = []
    while lines and lines[0].comment is None:
        blank.append(lines.pop(0))
    return blank, line.with_changes(leading_lines=lines)


def _finished(
    suite: cst.IndentedBlock, body: list[cst.BaseStatement], carried: list[cst.EmptyLine]
) -> cst.IndentedBlock:
    footer = [*(c for c in carried if c.comment), *suite.footer]
    if not body:
        body = [cst.SimpleStatementLine([cst.Pass()])]
    return suite.with_changes(body=body, footer=footer)


def _with_header(line: cst.CSTNode, header: cst.CSTNode) -> cst.CSTNode:
    """The parsed header with the suites of the old statement."""
    kept = {n: getattr(line, n) for n in ("body", "orelse", "decorators") if hasattr(line, n)}
    return header.with_changes(**kept)


def _with_comments(
    lines: Sequence[cst.EmptyLine], comments: list[str], resolved: bool
) -> list[cst.EmptyLine]:
    """A statement's leading lines, then its comments.

    TODOs that are resolved go. One that an earlier run wrote for the same rule stays as it was
    worded then: running again changes nothing.
    """
    kept, said = [], set[str]()
    for line in lines:
        text = line.comment.value if line.comment else ""
        rule = text.partition(":")[0]
        is_todo = text.startswith("# TODO(nki-migrate ")
        if not (is_todo and resolved):
            kept.append(line)
            said |= {rule} if is_todo else set()
    return [*kept, *(_comment(c) for c in comments if c.partition(":")[0] not in said)]


def _comment(text: str) -> cst.EmptyLine:
    return cst.EmptyLine(indent=True, comment=cst.Comment(text))


def _bare(line: cst.CSTNode) -> cst.BaseStatement:
    return line.with_changes(leading_lines=[])  # type: ignore[return-value]


def _with_leading(line: cst.BaseStatement, lines: list[cst.EmptyLine]) -> cst.BaseStatement:
    if not lines:
        return line
    own = list(line.leading_lines)  # type: ignore[attr-defined]
    if own and own[0].comment is None and lines[-1].comment is None:
        lines = lines[:-1]
    return line.with_changes(leading_lines=[*lines, *own])


def _with_trailing(
    new: list[cst.BaseStatement], trailing: cst.TrailingWhitespace
) -> list[cst.BaseStatement]:
    """The old end-of-line comment goes behind the last new line, or above a new block."""
    if trailing.comment is None:
        return new
    last = new[-1]
    if isinstance(last, cst.SimpleStatementLine):
        return [*new[:-1], last.with_changes(trailing_whitespace=trailing)]
    leading = [*_leading(new[0]), _comment(trailing.comment.value)]
    return [_with_leading(_bare(new[0]), leading), *new[1:]]


def _kept_when_removed(
    leading: list[cst.EmptyLine], trailing: cst.TrailingWhitespace
) -> list[cst.EmptyLine]:
    """Comments outlive the statement they was at; of blank lines at most the first."""
    blank = [x for x in leading[:1] if x.comment is None]
    kept = [x for x in leading if x.comment is not None]
    return [*blank, *kept]


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
