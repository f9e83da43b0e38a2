"""What a run of the codemod says about a file: findings, the edits they carry, kernel reports."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["Edit", "FileResult", "FileStatus", "Finding", "KernelReport", "Safety", "Severity"]


class Severity(StrEnum):
    """How much a finding matters on the target version."""

    ERROR = "error"  # will not compile, or is silently wrong
    WARNING = "warning"  # somebody has to decide
    NOTE = "note"  # for information


class Safety(StrEnum):
    """Whether the edits of a finding may be applied without asking."""

    SAFE = "safe"  # proved from the source
    UNSAFE = "unsafe"  # rests on the finding's `assumption`; applied with --unsafe-fixes
    MANUAL = "manual"  # no edit: a TODO is left


class FileStatus(StrEnum):
    """What happened to a file."""

    UNCHANGED = "unchanged"  # nothing to migrate
    CHANGED = "changed"  # `after` differs from `before`
    MANUAL = "manual"  # only manual items, text unchanged
    SKIPPED = "skipped"  # not a kernel file, or asked to be left alone
    FAILED = "failed"  # see `error`; `after` equals `before`


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace the characters between two positions by `text`.

    Lines and columns are 1-based characters; the end is exclusive. An empty range inserts.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that a rule has something to say about, in coordinates of the original file.

    `basis` lists the facts that an edit rests on ("x.shape == (P, F): unpacked in line 12").
    Findings of one statement that is rewritten as a whole share that statement's edit.
    """

    rule: str
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    severity: Severity
    safety: Safety
    message: str
    kernel: str | None = None
    assumption: str | None = None
    basis: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    applied: bool = False


@dataclass(frozen=True, slots=True)
class KernelReport:
    """The state of one kernel after the run.

    `complete`: nothing of it is left to a human. `runnable`: what is left does not stop it.
    `untouched`: it was left as it is, in its old dialect, on purpose. `reaches`: the functions that
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
class FileResult:
    """Everything known about one file; `after` is the migrated text (`before` if untouched)."""

    path: str
    status: FileStatus
    dialect: str
    kernels: tuple[KernelReport, ...] = ()
    findings: tuple[Finding, ...] = ()
    before: str = ""
    after: str = ""
    error: str | None = None
