"""Diagnostics, with codes that stay the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One remark on a kernel or its plan."""

    code: str
    text: str
    place: str = ""

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.code}: {self.text}"

    @property
    def is_error(self) -> bool:
        return self.code.startswith("E")


_DISTINCT = re.compile(r"parameters (.+) and (.+) are distinct tensors")


def folded(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics, with one for all pairs of distinct parameters."""
    found = list(found)
    pairs = {each: pair.groups() for each in found if (pair := _DISTINCT.fullmatch(each.text))}
    if len(pairs) < 2:
        return found
    names = dict.fromkeys(name for pair in pairs.values() for name in pair)
    text = f"{len(pairs)} pairs of parameters are distinct tensors: {', '.join(names)}"
    first = next(iter(pairs))
    one = Diagnostic(first.code, text, first.place)
    return [one if each is first else each for each in found if each is first or each not in pairs]
