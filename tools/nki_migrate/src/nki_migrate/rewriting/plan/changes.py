"""A plan of changed statements."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Change:
    """What becomes of one statement.

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
