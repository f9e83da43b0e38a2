"""SARIF 2.1.0, the log that code scanning services read.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0 with errata 01. What is not in a
property of the standard is in `properties`.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from neuroncore.findings.finding import Edit, Finding, Region, Safety, python_lines
from neuroncore.findings.project_urls import project_url
from neuroncore.findings.report import FileReport, Report

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT = "%SRCROOT%"
FINGERPRINT = "ruleKernelLine/v1"

Json = dict[str, Any]


def render(report: Report) -> str:
    """One run: the rules that reported something, a result per finding, failures of files."""
    ids = sorted({finding.rule for finding in report.findings})
    failures = [file for file in report.files if file.error is not None]
    run: Json = {
        "tool": {"driver": _driver(ids, report)},
        "invocations": [
            {
                "executionSuccessful": not failures,
                "exitCode": report.exit_code,
                "toolExecutionNotifications": [_failure(file) for file in failures],
            }
        ],
        "originalUriBaseIds": {
            ROOT: {"description": {"text": f"The folder that {report.tool} ran in."}}
        },
        "columnKind": "unicodeCodePoints",
        "newlineSequences": ["\r\n", "\n", "\r"],
        "results": [entry for file in report.files for entry in _results(file, ids)],
        "properties": {**report.parameters, **report.tables},
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


def _driver(ids: list[str], report: Report) -> Json:
    rules = [_descriptor(rule, report) for rule in ids]
    distribution = report.distribution or report.tool
    driver: Json = {"name": report.tool, "semanticVersion": version(distribution)}
    if (address := project_url(distribution, "Homepage")) is not None:
        driver["informationUri"] = address
    return driver | {"rules": rules}


def _descriptor(rule: str, report: Report) -> Json:
    text = report.rule_text(rule)
    entry: Json = {"id": rule, "shortDescription": {"text": text.title}}
    if text.page is not None:
        entry["help"] = {"text": text.page, "markdown": text.page}
    if text.address is not None:
        entry["helpUri"] = text.address
    return entry | ({"properties": dict(text.properties)} if text.properties else {})


def _results(file: FileReport, ids: list[str]) -> Iterator[Json]:
    lines = python_lines(file.text)
    seen: Counter[str] = Counter()
    for finding in file.findings:
        number = finding.region.line
        mark = fingerprint(finding, lines[number - 1] if 0 < number <= len(lines) else "")
        seen[mark] += 1
        entry: Json = {
            "ruleId": finding.rule,
            "ruleIndex": ids.index(finding.rule),
            "level": finding.severity.value,
            "message": {"text": finding.message},
            "locations": [_location(finding)] if finding.place is not None else [],
            "partialFingerprints": {FINGERPRINT: f"{mark}:{seen[mark]}"},
            "properties": _properties(finding),
        }
        if finding.edits:
            entry["fixes"] = [_fix(finding, lines)]
        yield entry


def fingerprint(finding: Finding, line: str) -> str:
    """A hash that survives moved code: of the rule, the kernel and the line's words."""
    words = " ".join(line.split())
    known = "\n".join((finding.rule, finding.kernel or "", words))
    return hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _properties(finding: Finding) -> Json:
    found: Json = {} if finding.safety is None else {"safety": finding.safety.value}
    found["applied"] = finding.applied
    texts = ("assumption", "code", "certainty", "source", "cure")
    found |= {name: str(text) for name in texts if (text := getattr(finding, name))}
    return found | ({"basis": list(finding.basis)} if finding.basis else {})


def _location(finding: Finding) -> Json:
    place = finding.region
    location: Json = {
        "physicalLocation": {
            "artifactLocation": _artifact(place.path),
            "region": _region(place),
        }
    }
    if finding.kernel:
        location["logicalLocations"] = [{"name": finding.kernel, "kind": "function"}]
    return location


def _region(place: Region | Edit) -> Json:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }


def _deleted(edit: Edit, lines: list[str]) -> Json:
    """The region of an edit; one that includes a line ending ends where the next line begins."""
    region = _region(edit)
    last = lines[edit.end_line - 1] if edit.end_line <= len(lines) else ""
    if edit.end_column > len(last.rstrip("\r\n")) + 1:
        return region | {"endLine": edit.end_line + 1, "endColumn": 1}
    return region


def _artifact(path: str) -> Json:
    """The address of a file, relative to the working directory if it is below it."""
    file = Path(path)
    if file.is_absolute() and file.is_relative_to(Path.cwd()):
        file = file.relative_to(Path.cwd())
    if file.is_absolute():
        return {"uri": file.as_uri()}
    return {"uri": quote(file.as_posix()), "uriBaseId": ROOT}


def _fix(finding: Finding, lines: list[str]) -> Json:
    replacements = [
        {"deletedRegion": _deleted(edit, lines), "insertedContent": {"text": edit.text}}
        for edit in finding.edits
    ]
    artifact = _artifact(finding.region.path)
    fix: Json = {
        "description": {"text": finding.message},
        "artifactChanges": [{"artifactLocation": artifact, "replacements": replacements}],
    }
    if finding.safety is Safety.UNSAFE:
        fix["properties"] = {"safety": "unsafe", "assumption": finding.assumption}
    return fix


def _failure(file: FileReport) -> Json:
    place = {"physicalLocation": {"artifactLocation": _artifact(file.path)}}
    return {"level": "error", "message": {"text": file.error}, "locations": [place]}
