"""The form of migrated texts: growth, length of lines, comments, and names that are new."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

COLUMNS = 100
_TODO = re.compile(r"\s*# TODO\(nki-migrate ")
_NUMBERED = re.compile(r".*_\d+")


@dataclass(frozen=True, slots=True)
class Form:
    """Counts of one text that changed; `growth` is of its characters, without TODO comments."""

    growth: float
    lines: int
    long_lines: int
    comments: int
    kept_comments: int
    names: int
    numbered_names: int


def form_of(before: str, after: str) -> Form | None:
    """How a migrated text reads beside the old one; None for a text that did not change."""
    if before == after:
        return None
    kept = [line for line in after.splitlines() if not _TODO.match(line)]
    added = (Counter(kept) - Counter(before.splitlines())).elements()
    lines = [line for line in added if line.strip()]
    old, new = _comments(before), _comments(after)
    names = _names(after) - _names(before)
    return Form(
        growth=len("\n".join(kept)) / max(1, len(before)),
        lines=len(lines),
        long_lines=sum(len(line) > COLUMNS for line in lines),
        comments=old.total(),
        kept_comments=(old & new).total(),
        names=len(names),
        numbered_names=sum(bool(_NUMBERED.fullmatch(name)) for name in names),
    )


def form_lines(forms: Sequence[Form]) -> str:
    """The sums of all texts in words."""

    def total(name: str) -> str:
        return f"{sum(getattr(form, name) for form in forms):,}"

    growth = median([form.growth for form in forms]) if forms else 1.0
    return (
        f"Form of the {len(forms)} texts that changed: median growth {growth:.2f} × of the "
        f"characters; {total('long_lines')} of {total('lines')} new lines are longer than "
        f"{COLUMNS} columns, TODO comments left out; {total('kept_comments')} of "
        f"{total('comments')} comments are there afterwards; {total('numbered_names')} of "
        f"{total('names')} new names end in a number."
    )


def _comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(t.string.strip() for t in tokens if t.type == tokenize.COMMENT)


def _names(text: str) -> set[str]:
    """The names that a text binds."""
    nodes = ast.walk(ast.parse(text))
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
