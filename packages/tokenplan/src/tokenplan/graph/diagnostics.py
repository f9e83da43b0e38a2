"""Diagnostics, with codes that stay the same."""

from __future__ import annotations

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
