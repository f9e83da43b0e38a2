"""`--add-ignores`: suppression comments for what is found, instead of edits."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterable
from dataclasses import replace

from neuroncore.findings import Finding, Severity
from nki_migrate.comments.suppressions import COMMENT
from nki_migrate.engine.results import FileResult, FileStatus
from nki_migrate.index import python_lines
from nki_migrate.rules.run_rules import RUN_RULES

# What is silenced may uncover something else on the same lines; three rounds have been enough for
# every public kernel that was tried.
_ROUNDS = 8


def with_ignores(text: str, migrate: Callable[[str], FileResult]) -> FileResult:
    """The result of adding comments until `migrate` finds nothing more that can be silenced.

    Its findings are the remaining ones, in lines of the text with the comments.
    """
    current, result = text, migrate(text)
    for _ in range(_ROUNDS):
        commented = add_comments(current, (f for f in result.findings if _is_reported(f)))
        if commented == current:
            break
        current, result = commented, migrate(commented)
    status = FileStatus.CHANGED if current != text else FileStatus.UNCHANGED
    left = tuple(replace(f, applied=False) for f in result.findings)
    return replace(result, status=status, findings=left, before=text, after=current)


def _is_reported(finding: Finding) -> bool:
    return finding.severity is not Severity.NOTE and finding.rule not in RUN_RULES


def add_comments(text: str, findings: Iterable[Finding]) -> str:
    """The text with `# nki-migrate: ignore[…]` behind each line that a finding begins on.

    A line that cannot end in a comment has its statement put between `off` and `on`.
    """
    wanted: dict[int, set[str]] = {}
    for finding in findings:
        wanted.setdefault(finding.region.line, set()).add(finding.rule)
    if not wanted:
        return text
    lines = python_lines(text)
    closed = _lines_without_room(text)
    around: dict[int, int] = {}
    for number, rules in wanted.items():
        if number in closed:
            first, last = _statement_around(text, number)
            around[first] = max(last, around.get(first, 0))
        elif number <= len(lines):
            lines[number - 1] = _commented(lines[number - 1], rules)
    for first, last in sorted(around.items(), reverse=True):
        pad = re.match(r"[ \t]*", lines[first - 1])
        indent, ending = pad[0] if pad else "", _ending(lines[first - 1]) or "\n"
        if not _ending(lines[last - 1]):
            lines[last - 1] += ending
        lines.insert(last, f"{indent}# nki-migrate: on{ending}")
        lines.insert(first - 1, f"{indent}# nki-migrate: off{ending}")
    return "".join(lines)


def _ending(line: str) -> str:
    return line[len(line.rstrip("\r\n")) :]


def _commented(line: str, rules: set[str]) -> str:
    """The line with the rules in its comment; a list that it has grows."""
    body = line.rstrip("\r\n")
    found = COMMENT.search(body)
    if found is None or found["word"] != "ignore":
        return f"{body}  # nki-migrate: ignore[{', '.join(sorted(rules))}]{_ending(line)}"
    known = {part.strip() for part in (found["ids"] or "").split(",") if part.strip()}
    listed = f"# nki-migrate: ignore[{', '.join(sorted(known | rules))}]"
    return body[: found.start()] + listed + body[found.end() :] + _ending(line)


def _lines_without_room(text: str) -> set[int]:
    """Lines that end inside of a string, or in a backslash."""
    closed = {n for n, line in enumerate(python_lines(text), 1) if line.rstrip().endswith("\\")}
    starts: list[int] = []
    for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
        kind = tokenize.tok_name[token.type]
        if kind == "STRING":
            closed |= set(range(token.start[0], token.end[0]))
        elif kind == "FSTRING_START":  # from Python 3.12 on, an f-string is several tokens
            starts.append(token.start[0])
        elif kind == "FSTRING_END":
            closed |= set(range(starts.pop(), token.end[0]))
    return closed


def _statement_around(text: str, line: int) -> tuple[int, int]:
    """First and last line of the innermost statement on a line, or of its header."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            found.append((node.lineno, body[0].lineno - 1 if body else node.end_lineno or line))
    return max(found, default=(line, line))
