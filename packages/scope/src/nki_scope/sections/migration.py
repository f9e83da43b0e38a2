"""A migrated file: its lines before and after side by side, and the rules of each line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from neuroncore.findings import Finding

SideBySide = tuple[str, int | None, str, int | None, str]
"""equal or changed; number and text of the old line and of the new one, if there is one."""


def migration_section(
    path: str, before: str, after: str, findings: Sequence[Finding]
) -> dict[str, Any]:
    """The rows of a file, and what rules found by line of the text before."""
    rules: dict[int, list[str]] = {}
    for finding in findings:
        rules.setdefault(finding.region.line, []).append(f"{finding.label}: {finding.message}")
    rows = list(_rows(before.splitlines(), after.splitlines()))
    return {"path": path, "rows": rows, "rules": rules}


def _rows(old: list[str], new: list[str]) -> Iterator[SideBySide]:
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for kind, old_first, old_end, new_first, new_end in blocks:
        lines = zip_longest(range(old_first, old_end), range(new_first, new_end))
        for before, after in lines:
            yield (
                "equal" if kind == "equal" else "changed",
                None if before is None else before + 1, "" if before is None else old[before],
                None if after is None else after + 1, "" if after is None else new[after],
            )  # fmt: skip
