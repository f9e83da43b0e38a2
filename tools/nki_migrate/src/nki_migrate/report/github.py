"""Workflow commands: lines that GitHub Actions turns into annotations of a pull request."""

from __future__ import annotations

from nki_migrate.findings import Finding, Severity
from nki_migrate.report.report import Report

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
# https://github.com/actions/toolkit/blob/main/packages/core/src/command.ts
_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def render_github(report: Report) -> str:
    """One command per finding, and an error per file that failed."""
    lines = []
    for result in report.results:
        if result.error is not None:
            lines.append(f"::error file={_property(result.path)}::{_data(result.error)}")
        lines += [_annotation(finding) for finding in result.findings]
    return "".join(f"{line}\n" for line in lines)


def _annotation(f: Finding) -> str:
    place = {
        "file": f.path,
        "line": f.line,
        "endLine": f.end_line,
        "col": f.column,
        "endColumn": f.end_column,
        "title": f"nki-migrate {f.rule} [{f.safety.value}]",
    }
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in place.items())
    inside = f"{f.kernel}: " if f.kernel else ""
    return f"::{_COMMANDS[f.severity]} {properties}::{_data(inside + f.message)}"


def _data(text: str) -> str:
    return text.translate(_DATA)


def _property(text: str) -> str:
    return text.translate(_PROPERTY)
