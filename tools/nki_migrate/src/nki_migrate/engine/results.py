"""The result of migrating a file: its findings, its kernels, its text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from neuroncore.findings import Finding, ShownAsHtml


class FileStatus(StrEnum):
    """The outcome for a file."""

    UNCHANGED = "unchanged"  # nothing to migrate
    CHANGED = "changed"  # `after` differs from `before`
    MANUAL = "manual"  # only manual items, text unchanged
    SKIPPED = "skipped"  # not a kernel file, or asked to be left alone
    FAILED = "failed"  # see `error`; `after` equals `before`


@dataclass(frozen=True, slots=True)
class KernelReport:
    """The state of one kernel after the run.

    `complete`: nothing of it is left to a human. `runnable`: what is left does not stop it.
    `untouched`: it was intentionally left in its old dialect. `reaches`: the functions that
    it names, by their names in this file or their import paths; `through`: the incomplete ones
    among all it reaches, where it is not complete because of them alone.
    """

    name: str
    line: int
    dialect: str
    complete: bool
    runnable: bool
    untouched: bool = False
    reaches: tuple[str, ...] = ()
    through: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileResult(ShownAsHtml):
    """Everything known about one file; `after` is the migrated text (`before` if untouched)."""

    path: str
    status: FileStatus
    dialect: str
    kernels: tuple[KernelReport, ...] = ()
    findings: tuple[Finding, ...] = ()
    before: str = ""
    after: str = ""
    error: str | None = None
