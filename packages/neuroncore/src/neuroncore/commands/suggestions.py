"""The nearest known name to one that is unknown."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, known: Iterable[str]) -> str | None:
    """`did you mean matmul?`, or None if no known name is similar."""
    near = get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]}?" if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The same as the end of a message: `; did you mean 'matmul'?`, or nothing."""
    near = get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
