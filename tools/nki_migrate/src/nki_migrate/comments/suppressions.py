"""Comments that tell the tool to leave something alone, and which of them did nothing.

- `# nki-migrate: ignore[NKI1131]` at the end of a line (no list: every rule); on a decorator or a
  `def` line it covers the whole kernel;
- `# nki-migrate: off` … `# nki-migrate: on` on lines of their own;
- `# nki-migrate: skip-file` before the first statement.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field

from neuroncore.findings import Finding, Region, Safety, Severity

COMMENT = re.compile(
    r"#\s*nki-migrate:\s*(?P<word>ignore|off|on|skip-file)\b(?:\[(?P<ids>[^\]]*)\])?"
)
_MARK = "nki-migrate:"
_EVERYTHING = ("NKI",)


@dataclass(frozen=True, slots=True)
class Suppression:
    """One comment: the ids (or prefixes) it names and the lines first … last it covers."""

    line: int
    column: int
    end_column: int
    ids: tuple[str, ...]
    first: int
    last: int

    def covers(self, rule_id: str, line: int) -> bool:
        """Whether a finding of this rule on this line (1-based) is suppressed."""
        return self.first <= line <= self.last and rule_id.startswith(self.ids)

    @property
    def text(self) -> str:
        """The suppression as it is named in a message."""
        return ", ".join(self.ids) if self.ids != _EVERYTHING else "any rule"


@dataclass(frozen=True, slots=True)
class Suppressions:
    """All suppression comments of a file."""

    entries: tuple[Suppression, ...] = ()
    skip_file: bool = False


@dataclass(slots=True)
class SuppressionLog:
    """The suppressions of a file during one run, and which of them were needed."""

    suppressions: Suppressions
    _used: set[Suppression] = field(default_factory=set)

    def silences(self, rule_id: str, line: int) -> bool:
        """Whether a finding of the rule on that line is suppressed; remembers that it was."""
        covering = [e for e in self.suppressions.entries if e.covers(rule_id, line)]
        self._used.update(covering)
        return bool(covering)

    def covers(self, first: int, last: int) -> bool:
        """Whether one comment keeps every rule off all these lines; remembers that it was used."""
        covering = [
            e
            for e in self.suppressions.entries
            if e.ids == _EVERYTHING and e.first <= first and last <= e.last
        ]
        self._used.update(covering)
        return bool(covering)

    def unused(self, path: str, rule: str) -> tuple[Finding, ...]:
        """A note of the rule for every comment that silenced nothing."""
        entries = (e for e in self.suppressions.entries if e not in self._used)
        return tuple(_unused_note(entry, path, rule) for entry in entries)


def _unused_note(entry: Suppression, path: str, rule: str) -> Finding:
    return Finding(
        rule=rule,
        place=Region(path, entry.line, entry.column, entry.line, entry.end_column),
        severity=Severity.NOTE,
        safety=Safety.MANUAL,
        message=f"this comment suppresses {entry.text}, but nothing here needs it; remove it",
    )


def read_suppressions(text: str, tree: ast.Module) -> Suppressions:
    """The suppression comments of a module; `tree` is its parse, for the extent of kernels."""
    if _MARK not in text:
        return Suppressions()
    scopes = _function_scopes(tree)
    first_statement = _first_statement(tree)
    last_line = text.count("\n") + 1
    entries: list[Suppression] = []
    opened: Suppression | None = None
    for word, ids, token in _comments(text):
        line, column = token.start
        here = Suppression(line, column + 1, token.end[1] + 1, ids, line, line)
        if word == "skip-file" and line < first_statement:
            return Suppressions((), skip_file=True)
        if word == "ignore":
            first, last = scopes.get(line, (line, line))
            entries.append(_spanning(here, first, last))
        elif word == "off" and opened is None:
            opened = here
        elif word == "on" and opened is not None:
            entries.append(_spanning(opened, opened.line, line))
            opened = None
    if opened is not None:
        entries.append(_spanning(opened, opened.line, last_line))
    return Suppressions(tuple(entries))


def _first_statement(tree: ast.Module) -> int:
    """The line of the first statement that is not the docstring."""
    after = tree.body[ast.get_docstring(tree, clean=False) is not None :]
    return after[0].lineno if after else 1 << 30


def _spanning(entry: Suppression, first: int, last: int) -> Suppression:
    return Suppression(entry.line, entry.column, entry.end_column, entry.ids, first, last)


def _comments(text: str) -> Iterator[tuple[str, tuple[str, ...], tokenize.TokenInfo]]:
    for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
        if token.type == tokenize.COMMENT and (match := COMMENT.search(token.string)):
            named = (match["ids"] or "").replace(" ", "")
            yield match["word"], tuple(filter(None, named.split(","))) or _EVERYTHING, token


def _function_scopes(tree: ast.Module) -> dict[int, tuple[int, int]]:
    """Lines of decorators and `def` headers → first and last line of that function."""
    scopes: dict[int, tuple[int, int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            span = (first, node.end_lineno or node.lineno)
            for line in range(first, node.body[0].lineno):
                scopes[line] = span
    return scopes
