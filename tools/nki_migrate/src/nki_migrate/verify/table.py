"""The table that ends a `--verify`: one row per kernel, then what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

from nki_migrate.verify.pair import Verdict

if TYPE_CHECKING:
    from nki_migrate.verify.compare import Difference

HEADINGS = (
    "kernel",
    "runs",
    "rules applied",
    "TODOs",
    "max error vs reference",
    "max error vs old",
    "equal",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A verdict with what the migration did to that kernel; both None for `verify OLD NEW`."""

    verdict: Verdict
    rules: int | None = None
    todos: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The row for machines."""
        verdict = self.verdict
        return {
            "file": verdict.file,
            "kernel": verdict.kernel,
            "variants": verdict.variants,
            "rules": self.rules,
            "todos": self.todos,
            "against_reference": _json(verdict.against_reference),
            "against_old": _json(verdict.against_old),
            "equal": verdict.is_equal,
            "blocked": verdict.blocked,
            "unchanged_since": verdict.unchanged_since,
            "problems": list(verdict.problems),
        }


def _json(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    # JSON has no infinity; a null error beside a `why` means "not comparable"
    found = {"max_error": difference.max_error, "max_ulps": difference.max_ulps}
    finite: dict[str, Any] = {k: None if v == inf else v for k, v in found.items()}
    return finite | {"why": difference.why}


def render_table(rows: Sequence[Row]) -> str:
    """The rows as aligned text; empty columns are left out."""
    cells = [HEADINGS, *(_cells(row) for row in rows)]
    shown = [i for i in range(len(HEADINGS)) if any(line[i] for line in cells[1:])]
    widths = {i: max(len(line[i]) for line in cells) for i in shown}
    lines = ["  ".join(line[i].ljust(widths[i]) for i in shown).rstrip() for line in cells]
    lines.insert(1, "  ".join("-" * widths[i] for i in shown))
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    verdict = row.verdict
    return (
        verdict.kernel,
        str(verdict.variants),
        "" if row.rules is None else str(row.rules),
        "" if row.todos is None else str(row.todos),
        _error(verdict.against_reference, verdict),
        _error(verdict.against_old, verdict),
        _equal(verdict),
    )


def cells_of(row: Row) -> tuple[str, str, str]:
    """How many runs, and the largest errors against the reference and the old kernel."""
    _, runs, _, _, reference, old, _ = _cells(row)
    return runs, reference, old


def _equal(verdict: Verdict) -> str:
    if verdict.unchanged_since is not None:
        return f"yes, unchanged since {verdict.unchanged_since}"
    return "yes" if verdict.is_equal else "blocked" if verdict.blocked else "NO"


def _error(difference: Difference | None, verdict: Verdict) -> str:
    if difference is None:
        return "no reference" if verdict.is_equal else "not run"
    if difference.max_error == 0.0:
        return "0 (exact)"
    return f"{difference.max_error:.2g}"


def problems(rows: Iterable[Row]) -> list[str]:
    """The problems of the runs, a text each."""
    return [
        f"{row.verdict.file}: {row.verdict.kernel}: {text}"
        for row in rows
        for text in row.verdict.problems
    ]
