"""Whether a migration kept its hands off what it had nothing to say about."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Findings = Sequence[Mapping[str, Any]]


def touched_unasked(before: bytes, after: bytes, findings: Findings) -> list[int]:
    """Lines of `before`, 1-based, that `after` lacks although no finding speaks of them.

    All other lines have to be there byte by byte and in their order. A finding speaks of the
    statement that contains it (of a compound one: its header), and of blank lines beside that.
    Where a grid became loops (NKI1118, NKI1119) a line may move to the right.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    said = _spoken_of(before, [f for f in findings if f["applied"]])
    if any(f["rule"] in ("NKI1118", "NKI1119") and f["applied"] for f in findings):
        old, new = ([line.lstrip(b" \t") for line in lines] for lines in (old, new))
    missing = []
    place = 0
    for number, line in enumerate(old, 1):
        if number in said:
            continue
        try:
            place = new.index(line, place) + 1
        except ValueError:
            missing.append(number)
    return missing


def _spoken_of(source: bytes, findings: Iterable[Mapping[str, Any]]) -> set[int]:
    tree = ast.parse(source)
    spans = sorted({s for n in ast.walk(tree) if isinstance(n, ast.stmt) for s in _spans(n)})
    said: set[int] = set()
    for finding in findings:
        said |= set(range(finding["line"], finding["end_line"] + 1))
        for edit in finding["edits"]:
            said |= set(range(edit["line"], edit["end_line"] + 1))
        around = [s for s in spans if s[0] <= finding["line"] <= s[1]]
        if around:
            first, last = min(around, key=lambda s: s[1] - s[0])
            said |= set(range(first, last + 1))
    return said | _blank_beside(source.splitlines(), said)


def _blank_beside(lines: Sequence[bytes], said: set[int]) -> set[int]:
    """Blank lines next to those lines, comments and other blank lines left out of account."""
    found: set[int] = set()
    for order in (range(1, len(lines) + 1), range(len(lines), 0, -1)):
        beside = False
        for number in order:
            text = lines[number - 1].strip()
            if number in said:
                beside = True
            elif text and not text.startswith(b"#"):
                beside = False
            elif beside and not text:
                found.add(number)
    return found


def _spans(node: ast.stmt) -> list[tuple[int, int]]:
    """The lines of a statement; of a compound one, of its header and of each decorator."""
    body = getattr(node, "body", None)
    if not isinstance(body, list) or not body:
        return [(node.lineno, node.end_lineno or node.lineno)]
    decorators = getattr(node, "decorator_list", [])
    first = min([body[0].lineno, *(d.lineno for d in getattr(body[0], "decorator_list", []))])
    header = (node.lineno, max(node.lineno, first - 1))
    return [header, *((d.lineno, d.end_lineno) for d in decorators)]
