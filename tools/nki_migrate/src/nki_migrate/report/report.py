"""One run as every format gets it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from nki_migrate.findings import FileResult, Finding
from nki_migrate.report.summary import is_hidden, is_manual, is_open

Mode = Literal["check", "diff", "fix"]


@dataclass(frozen=True, slots=True)
class Report:
    """The results of a run, what was asked for, and how much to say about it.

    `verification` holds the rows of `--verify` (None: not asked for), `verified` the same as a
    table for people. `quiet` leaves only the closing line of a text, `verbose` also tells what
    each edit rests on.
    """

    results: Sequence[FileResult]
    target: str
    source: str = "auto"
    mode: Mode = "check"
    verification: Sequence[dict[str, Any]] | None = None
    verified: str = ""
    color: bool = False
    quiet: bool = False
    verbose: bool = False
    statistics: bool = False
    exit_code: int = field(default=0, compare=False)

    @property
    def is_left(self) -> Callable[[Finding], bool]:
        """Whether a finding is still to be resolved after this run: what exit code 1 counts."""
        if self.mode == "fix":
            return lambda finding: is_manual(finding) or is_hidden(finding)
        return is_open
