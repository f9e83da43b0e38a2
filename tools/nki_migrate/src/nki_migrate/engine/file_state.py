"""The state of a file between version steps, and its result."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from neuroncore.findings import Finding, Severity
from nki_migrate.comments.todos import with_todos
from nki_migrate.engine.call_graph import named_functions
from nki_migrate.engine.results import FileResult, FileStatus, KernelReport
from nki_migrate.facts.dialects import file_dialect
from nki_migrate.index import FileIndex, Project, Source, apply_edits
from nki_migrate.index.line_map import LineMap
from nki_migrate.settings.request import Request


@dataclass(slots=True)
class FileState:
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
        """The original line of each line of the current text."""
        if self._lines is None or self._lines[0] != self.text:
            self._lines = self.text, LineMap(self.before, self.text)
        return self._lines[1]

    def report_manual(self, found: Collection[tuple[Finding, ast.AST]]) -> None:
        """Add findings in the current text, each with its TODO."""
        index, origin = self.index(), self.origin()
        self.findings += [origin.moved(finding) for finding, _ in found]
        if self.request.todo == "comment":
            self.text = apply_edits(index.source, with_todos(index, found))

    def is_kept(self, line: int) -> bool:
        """Whether a line of the original belongs to a kernel that is left alone."""
        return any(first <= line <= last for first, last in self.kept.values())


def result_of(state: FileState, index: FileIndex, dialects: dict[str, str]) -> FileResult:
    findings = tuple(sorted(state.findings, key=lambda f: (f.region.line, f.region.column, f.rule)))
    left: dict[str | None, set[Severity]] = defaultdict(set)
    for found in findings:
        if not found.applied:
            left[found.kernel].add(found.severity)
    kernels = tuple(
        KernelReport(
            f.name,
            f.node.lineno,
            dialects[f.name],
            complete=f.name not in state.unfinished
            and not left[f.name] & {Severity.ERROR, Severity.WARNING},
            runnable=f.name not in state.unfinished and Severity.ERROR not in left[f.name],
            untouched=state.is_kept(f.node.lineno),
            reaches=named_functions(index, f),
        )
        for f in index.functions.values()
    )
    if state.text != state.before:
        status = FileStatus.CHANGED
    else:
        status = FileStatus.MANUAL if findings else FileStatus.UNCHANGED
    dialect = file_dialect(dialects.values())
    return FileResult(state.path, status, dialect, kernels, findings, state.before, state.text)
