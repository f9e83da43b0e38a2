"""One file on its way through the steps, and what came of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from nki_migrate.dialects import file_dialect
from nki_migrate.findings import FileResult, FileStatus, Finding, KernelReport, Severity
from nki_migrate.index import FileIndex, Project, Source
from nki_migrate.lines import LineMap
from nki_migrate.reach import reaches
from nki_migrate.request import Request

__all__ = ["Run", "result_of"]


@dataclass(slots=True)
class Run:
    """The state of one file between steps."""

    path: str
    request: Request
    project: Project | None
    silenced: Callable[[str, int], bool]
    before: str
    text: str
    starts: dict[str, str] = field(default_factory=dict)  # kernel → version it starts from
    silent: dict[str, bool] = field(default_factory=dict)  # kernels that name nothing of NKI
    findings: list[Finding] = field(default_factory=list)
    kept: dict[str, tuple[int, int]] = field(default_factory=dict)  # kernels left alone → lines
    unfinished: set[str] = field(default_factory=set)  # kernels with something of 0.1 left
    _read: FileIndex | None = None
    _lines: tuple[str, LineMap] | None = None

    def index(self) -> FileIndex:
        """The index of the text as it is now; the last one while the text stays."""
        if self._read is None or self._read.source.text != self.text:
            elsewhere = self.project.elsewhere(self.path) if self.project is not None else ()
            self._read = FileIndex(Source(self.text, self.path), elsewhere)
        return self._read

    def origin(self) -> LineMap:
        """Which lines of the original the lines of the text as it is now stand for."""
        if self._lines is None or self._lines[0] != self.text:
            self._lines = self.text, LineMap(self.before, self.text)
        return self._lines[1]

    def is_kept(self, line: int) -> bool:
        """Whether a line of the original belongs to a kernel that is left alone."""
        return any(first <= line <= last for first, last in self.kept.values())


def result_of(run: Run, index: FileIndex, dialects: dict[str, str]) -> FileResult:
    findings = tuple(sorted(run.findings, key=lambda f: (f.line, f.column, f.rule)))
    left: dict[str | None, set[Severity]] = defaultdict(set)
    for found in findings:
        if not found.applied:
            left[found.kernel].add(found.severity)
    kernels = tuple(
        KernelReport(
            f.name,
            f.node.lineno,
            dialects[f.name],
            complete=f.name not in run.unfinished
            and not left[f.name] & {Severity.ERROR, Severity.WARNING},
            runnable=f.name not in run.unfinished and Severity.ERROR not in left[f.name],
            untouched=run.is_kept(f.node.lineno),
            reaches=reaches(index, f),
        )
        for f in index.functions.values()
    )
    if run.text != run.before:
        status = FileStatus.CHANGED
    else:
        status = FileStatus.MANUAL if findings else FileStatus.UNCHANGED
    dialect = file_dialect(dialects.values())
    return FileResult(run.path, status, dialect, kernels, findings, run.before, run.text)
