"""Workflow commands: lines that GitHub Actions shows as annotations of a pull request."""

from __future__ import annotations

from neuroncore.findings.finding import Finding, Severity
from neuroncore.findings.report import Report

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
# https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def render(report: Report) -> str:
    """One command per finding, and an error per file that failed."""
    lines = []
    for file in report.files:
        if file.error is not None:
            path = file.path.translate(_PROPERTY)
            lines.append(f"::error file={path}::{file.error.translate(_DATA)}")
        lines += [_annotation(finding, report.tool) for finding in file.findings]
    return "".join(f"{line}\n" for line in lines)


def _annotation(finding: Finding, tool: str) -> str:
    place = finding.region
    safety = "" if finding.safety is None else f" [{finding.safety}]"
    where = {
        "file": place.path,
        "line": place.line,
        "endLine": place.end_line,
        "col": place.column,
        "endColumn": place.end_column,
    }
    title = {"title": f"{tool} {finding.label}{safety}"}
    properties = title if finding.place is None else where | title
    given = ",".join(f"{name}={str(v).translate(_PROPERTY)}" for name, v in properties.items())
    inside = f"{finding.kernel}: " if finding.kernel else ""
    message = (inside + finding.message).translate(_DATA)
    return f"::{_COMMANDS[finding.severity]} {given}::{message}"
