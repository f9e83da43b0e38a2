"""A run of a tool as every output format receives it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from neuroncore.findings.finding import Finding, Severity


@dataclass(frozen=True, slots=True)
class Case:
    """A unit of a file that passes or fails as a whole, such as a kernel: a JUnit test case.

    `problems` are reasons to fail beside its findings, `skipped` a reason to have left it out.
    """

    name: str
    line: int
    problems: tuple[str, ...] = ()
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class FileReport:
    """The findings of one file, or the `error` that it failed with.

    `text` is the source that regions refer to; `properties` go into JSON documents.
    """

    path: str
    findings: tuple[Finding, ...] = ()
    text: str = ""
    error: str | None = None
    cases: tuple[Case, ...] = ()
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleText:
    """The documentation of a rule: its title, its page as Markdown, its address, its properties."""

    title: str
    page: str | None = None
    address: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict)


def _is_open(finding: Finding) -> bool:
    return finding.severity is not Severity.NOTE


def _cure(finding: Finding) -> Iterable[str]:
    return () if finding.cure is None else (f"help: {finding.cure}",)


@dataclass(frozen=True, slots=True)
class Report:
    """The results of a run, and how much of them to print.

    `parameters` are the settings of the run, `summary` its totals, `tables` further results; all
    three go into documents for machines. In a text, `closing` lines follow the findings, then
    `conclusion` in bold, then `result`; that and `problems` also precede the findings.
    `is_open` selects the findings that exit code 1 counts, `is_shown` the ones of a text, `notes`
    gives the lines below a finding; `unresolved` and `failure` word a failed JUnit case.
    `distribution` is the package of the tool where it has another name.
    """

    tool: str
    files: Sequence[FileReport]
    rule_text: Callable[[str], RuleText] = RuleText
    docs: Callable[[str], str | None] = lambda rule: None
    notes: Callable[[Finding], Iterable[str]] = _cure
    is_open: Callable[[Finding], bool] = _is_open
    is_shown: Callable[[Finding], bool] = lambda finding: True
    parameters: Mapping[str, Any] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Any] = field(default_factory=dict)
    closing: Sequence[str] = ()
    conclusion: str = ""
    result: str = ""
    problems: Sequence[str] = ()
    unresolved: str = "to resolve"
    failure: str = "finding"
    distribution: str = ""
    color: bool = False
    quiet: bool = False
    verbose: bool = False
    exit_code: int = 0

    @property
    def findings(self) -> list[Finding]:
        return [finding for file in self.files for finding in file.findings]
