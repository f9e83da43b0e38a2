"""Whether a migration kept its hands off what it had nothing to say about."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any


def touched_unasked(
    before: bytes, after: bytes, findings: Sequence[Mapping[str, Any]]
) -> list[int]:
    """Lines of `before`, 1-based, that are not in `after` although no finding speaks of them.

    A finding speaks of the statement that it stands in (of a compound one: its header), and of
    blank lines right above that. Where a grid became loops (NKI1118) a line may move to the right.
    Line endings count.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    said = _spoken_of(before, [f for f in findings if f["applied"]])
    indented = any(f["rule"] == "NKI1118" and f["applied"] for f in findings)
    if indented:
        old = [line.lstrip() or line for line in old]
        new = [line.lstrip() or line for line in new]
    gone: set[int] = set()
    for tag, i, j, _, _ in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag in ("replace", "delete"):
            gone |= set(range(i + 1, j + 1))
    return sorted(gone - said)


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
    lines = source.splitlines()
    for number in range(len(lines), 0, -1):
        if number + 1 in said and not lines[number - 1].strip():
            said.add(number)
    return said


def _spans(node: ast.stmt) -> list[tuple[int, int]]:
    """The lines of a statement; of a compound one, of its header and of each decorator."""
    body = getattr(node, "body", None)
    if not isinstance(body, list) or not body:
        return [(node.lineno, node.end_lineno or node.lineno)]
    decorators = getattr(node, "decorator_list", [])
    first = min([body[0].lineno, *(d.lineno for d in getattr(body[0], "decorator_list", []))])
    header = (node.lineno, max(node.lineno, first - 1))
    return [header, *((d.lineno, d.end_lineno) for d in decorators)]
