"""TODO comments: put above what is left, not repeated, removed when resolved."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Sequence

from neuroncore.findings import Edit, Finding
from nki_migrate.index import FileIndex, python_lines
from nki_migrate.index.line_map import LineMap

MARK = "# TODO(nki-migrate "
REWRITING = "NKI1"
"""The ids of the rules of the step 0.1 to 0.2 begin so."""
_TODO = re.compile(r"^\s*# TODO\(nki-migrate (NKI\d+)\)(?:: (.*))?")

_ASSIGNS_ITEM = re.compile(r"^\s*\w+\[.*\]\s*[-+*/]?=[^=]")


def todo_text(rule: str, message: str) -> str:
    """The comment for one finding."""
    return f"{MARK}{rule}): {message}"


def with_todos(index: FileIndex, left: Iterable[tuple[Finding, ast.AST]]) -> list[Edit]:
    """Insertions of comments above the statements of findings without an edit."""
    edits = []
    for finding, node in left:
        statement = index.statement_of(node)
        if statement is None:
            continue
        decorators = getattr(statement, "decorator_list", ())
        line = min([statement.lineno, *(d.lineno for d in decorators)])
        if todo_above(index.source.lines, line, finding.rule):
            continue
        pad, newline = index.source.indentation(line), index.source.newline
        text = f"{pad}{todo_text(finding.rule, finding.message)}{newline}"
        edits.append(Edit(line, 1, line, 1, text))
    return list(dict.fromkeys(edits))


def count_todos(text: str, functions: Collection[str] | None = None) -> int:
    """How many TODO comments are in functions of a file, or above them; None: in all of it."""
    if MARK not in text:
        return 0
    lines = python_lines(text)
    marked = {n for n, line in enumerate(lines, 1) if _TODO.match(line)}
    if functions is None:
        return len(marked)
    spans = [
        range(_first_line(lines, node), (node.end_lineno or 0) + 1)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name in functions
    ]
    return sum(any(n in span for span in spans) for n in marked)


def _first_line(lines: Sequence[str], node: ast.FunctionDef) -> int:
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return first


def has_open_mark(lines: Sequence[str], first: int, last: int) -> bool:
    """Whether an earlier run left something of the step 0.1 → 0.2 in these lines (1-based)."""
    return any(f"{MARK}{REWRITING}" in line for line in lines[max(first - 1, 0) : last])


def todo_above(lines: Sequence[str], line: int, rule: str = REWRITING) -> tuple[str, str] | None:
    """Rule and message of a TODO right above a line (1-based), of a rule whose id begins so."""
    for above in reversed(lines[: line - 1]):
        if not above.lstrip().startswith("#"):
            break
        match = _TODO.match(above)
        if match and match[1].startswith(rule):
            return match[1], (match[2] or "").strip()
    return None


def without_stale_todos(text: str, before: str, findings: list[Finding]) -> str:
    """The text without TODOs of statements that nothing is left to be said about.

    Only comments that the file already had: this run's own are up to date. What is said may be
    another rule of the same step by now: a run sees more than the one before.
    """
    if MARK not in before:
        return text
    open_steps = {(_step(f.rule), f.region.line) for f in findings if not f.applied}
    origin = LineMap(before, text)
    spans = _statement_lines(text)
    lines = python_lines(text)
    kept = []
    for number, line in enumerate(lines, 1):
        match = _TODO.match(line)
        if match and not _still_open(match[1], number, lines, origin, open_steps, spans):
            continue
        kept.append(line)
    return "".join(kept)


def _step(rule: str) -> str:
    return rule[: len(REWRITING)]


def _statement_lines(text: str) -> dict[int, int]:
    """First line of each statement → its last; of a compound one, the last of its header."""
    found: dict[int, int] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            body = getattr(node, "body", None)
            last = body[0].lineno - 1 if isinstance(body, list) and body else node.end_lineno
            found[first] = max(found.get(first, first), last or first)
    return found


def _still_open(
    rule: str,
    number: int,
    lines: list[str],
    origin: LineMap,
    open_steps: set[tuple[str, int]],
    spans: dict[int, int],
) -> bool:
    """Whether a finding of the rule's step lies within the statement below the comment."""
    below = number
    while below < len(lines) and (
        not lines[below].strip() or lines[below].lstrip().startswith("#")
    ):
        below += 1
    if below < len(lines) and _ASSIGNS_ITEM.match(lines[below]):
        return True  # item assignment is not in 0.2: the statement is not finished
    first, last = origin.line(below + 1), origin.line(spans.get(below + 1, below + 1))
    return any(step == _step(rule) and first <= line <= last for step, line in open_steps)
