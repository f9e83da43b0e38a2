"""The results of a run as a report for the output formats."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any, Literal

from neuroncore.findings import Case, FileReport, Finding, Report, RuleText
from neuroncore.findings.project_urls import project_url
from nki_migrate.engine.results import FileResult, KernelReport
from nki_migrate.report.pages import render_page
from nki_migrate.report.summary import (
    Summary,
    is_hidden,
    is_manual,
    is_open,
    kernel_lists,
    statistics,
    statistics_table,
    summarize,
    summary_line,
)
from nki_migrate.rules import all_rules
from nki_migrate.rules.run_rules import RUN_RULES

Mode = Literal["check", "diff", "fix"]
Verdicts = Sequence[Mapping[str, Any]]

DOCS = "docs/rules.md"  # in the repository


def make_report(
    results: Sequence[FileResult],
    target: str,
    source: str = "auto",
    mode: Mode = "check",
    verification: Verdicts | None = None,
    verified: str = "",
    problems: Sequence[str] = (),
    color: bool = False,
    quiet: bool = False,
    verbose: bool = False,
    with_statistics: bool = False,
    exit_code: int = 0,
) -> Report:
    """The report of a run. `verification` has the rows of `--verify` (None: not requested),
    `verified` the same as a table for people, `problems` what went wrong.
    """
    is_unresolved = unresolved_after(mode)
    summary = summarize(results)
    counts = [asdict(count) for count in statistics(results)]
    return Report(
        "nki-migrate",
        [_file(result, verification or (), is_unresolved) for result in results],
        rule_text=_rule_text,
        docs=_docs,
        notes=lambda finding: _notes(finding, verbose),
        is_open=is_unresolved,
        is_shown=_shown(mode, verbose),
        parameters={"from": source, "to": target},
        summary=_totals(summary),
        tables=({"statistics": counts} if with_statistics else {})
        | ({} if verification is None else {"verify": list(verification)}),
        closing=[
            *([] if quiet else kernel_lists(results, verification or ())),
            *(statistics_table(results) if with_statistics else ()),
        ],
        conclusion=summary_line(summary, target),
        result=verified,
        problems=problems,
        unresolved="to migrate",
        failure="migration",
        color=color,
        quiet=quiet,
        verbose=verbose,
        exit_code=exit_code,
    )


def unresolved_after(mode: Mode) -> Callable[[Finding], bool]:
    """Whether a finding is still to be resolved after a run: what exit code 1 counts."""
    if mode == "fix":
        return lambda finding: is_manual(finding) or is_hidden(finding)
    return is_open


def _shown(mode: Mode, verbose: bool) -> Callable[[Finding], bool]:
    """Findings that a text shows: all, or after a run that makes the edits the remaining work."""
    return (lambda finding: True) if verbose or mode == "check" else unresolved_after(mode)


def _file(
    result: FileResult, verdicts: Verdicts, is_unresolved: Callable[[Finding], bool]
) -> FileReport:
    properties = {
        "status": result.status.value,
        "dialect": result.dialect,
        "kernels": [asdict(kernel) for kernel in result.kernels],
    }
    cases = tuple(
        Case(
            kernel.name,
            kernel.line,
            tuple(_differences(result, kernel, verdicts)),
            "left as it is, as a comment requests" if kernel.untouched else None,
        )
        for kernel in result.kernels
    )
    return FileReport(result.path, result.findings, result.before, result.error, cases, properties)


def _differences(result: FileResult, kernel: KernelReport, verdicts: Verdicts) -> Iterator[str]:
    for row in verdicts:
        if (row["file"], row["kernel"]) == (result.path, kernel.name) and not row["equal"]:
            yield "; ".join(["old and new are not shown to be equal", *row["problems"]])


def _notes(finding: Finding, verbose: bool) -> Iterator[str]:
    if finding.assumption:
        yield f"assumes: {finding.assumption}"
    if is_hidden(finding):
        yield "help: applied with --unsafe-fixes"
    if verbose:
        yield from (f"because: {fact}" for fact in finding.basis)
    if is_manual(finding):
        yield f"help: nki-migrate explain {finding.rule}"


def _totals(summary: Summary) -> dict[str, Any]:
    return asdict(summary) | {"dialects": dict(summary.dialects), "kernels": summary.kernels}


# -- rules


def _docs(rule: str) -> str:
    if rule in RUN_RULES:
        return "tools/nki_migrate/README.md#leaving-things-alone"
    return f"{DOCS}#{rule.lower()}"


def _rule_text(rule_id: str) -> RuleText:
    documentation = project_url("nki-migrate", "Documentation")
    address = f"{documentation}#{rule_id.lower()}" if documentation else None
    if rule_id in RUN_RULES:
        return RuleText(RUN_RULES[rule_id], address=address)
    rule = all_rules()[rule_id]
    properties = {
        "step": "→".join(rule.step), "safety": rule.safety.value, "class": rule.klass,
    }  # fmt: skip
    return RuleText(rule.title, render_page(rule), address, properties)


# -- the change of a file

_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # only \n ends a line of a diff
_NO_NEWLINE = "\n\\ No newline at end of file\n"


def unified_diff(result: FileResult) -> str:
    """The change of a file; empty when there is none."""
    if result.before == result.after:
        return ""
    path = PurePath(result.path).as_posix().lstrip("/")
    lines = difflib.unified_diff(
        _LINE.findall(result.before), _LINE.findall(result.after), f"a/{path}", f"b/{path}"
    )
    return "".join(line if line.endswith("\n") else line + _NO_NEWLINE for line in lines)
