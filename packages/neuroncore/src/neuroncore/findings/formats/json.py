"""One JSON document: the parameters of a run, its files with their findings, and the totals."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from neuroncore.findings.finding import Finding
from neuroncore.findings.report import FileReport, Report

SCHEMA_VERSION = 1
_OPTIONAL = (
    "certainty", "expected", "got", "cure", "source", "code", "instruction", "operand", "notes",
)  # fmt: skip


def render(report: Report) -> str:
    """`{version, tool, …parameters, files: […], summary, …tables}`."""
    document: dict[str, Any] = {
        "version": SCHEMA_VERSION,
        "tool": report.tool,
        **report.parameters,
        "files": [_file(file, report) for file in report.files],
        "summary": dict(report.summary),
        **report.tables,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _file(file: FileReport, report: Report) -> dict[str, Any]:
    findings = [as_json(finding, report) for finding in file.findings]
    return {"path": file.path, **file.properties, "findings": findings, "error": file.error}


def as_json(finding: Finding, report: Report) -> dict[str, Any]:
    """A finding as an object; parts that most rules do not have are left out where empty."""
    place = finding.region
    entry = {
        "rule": finding.rule,
        "path": place.path,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
        "severity": finding.severity,
        "safety": finding.safety,
        "message": finding.message,
        "kernel": finding.kernel,
        "assumption": finding.assumption,
        "basis": finding.basis,
        "edits": [asdict(edit) for edit in finding.edits],
        "applied": finding.applied,
    }
    entry |= {name: value for name in _OPTIONAL if (value := getattr(finding, name))}
    docs = report.docs(finding.rule)
    return entry if docs is None else entry | {"docs": docs}
