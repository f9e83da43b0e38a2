"""SARIF 2.1.0, the log that code scanning services read.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0 with errata 01. What is not in a
property of the standard is in `properties`.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import metadata, version
from pathlib import Path
from typing import Any
from urllib.parse import quote

from nki_migrate.findings import Edit, FileResult, Finding, Safety
from nki_migrate.index import python_lines
from nki_migrate.own_rules import OWN_RULES
from nki_migrate.report.pages import render_page
from nki_migrate.report.report import Report
from nki_migrate.report.summary import statistics
from nki_migrate.rules import all_rules

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT = "%SRCROOT%"
FINGERPRINT = "ruleKernelLine/v1"

Json = dict[str, Any]


def render_sarif(report: Report) -> str:
    """One run: the rules that reported something, a result per finding, failures of files."""
    ids = sorted({f.rule for result in report.results for f in result.findings})
    failures = [result for result in report.results if result.error is not None]
    run: Json = {
        "tool": {"driver": _driver(ids)},
        "invocations": [
            {
                "executionSuccessful": not failures,
                "exitCode": report.exit_code,
                "toolExecutionNotifications": [_failure(result) for result in failures],
            }
        ],
        "originalUriBaseIds": {
            ROOT: {"description": {"text": "The folder that nki-migrate ran in."}}
        },
        "columnKind": "unicodeCodePoints",
        "newlineSequences": ["\r\n", "\n", "\r"],
        "results": [entry for result in report.results for entry in _results(result, ids)],
        "properties": _properties(report),
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, allow_nan=False) + "\n"


def _properties(report: Report) -> Json:
    found: Json = {"from": report.source, "to": report.target}
    if report.statistics:
        found["statistics"] = [asdict(count) for count in statistics(report.results)]
    if report.verification is not None:
        found["verify"] = list(report.verification)
    return found


# -- rules


def _driver(ids: list[str]) -> Json:
    rules = [_descriptor(rule_id) for rule_id in ids]
    return {"name": "nki-migrate", "semanticVersion": version("nki-migrate"), "rules": rules}


def _descriptor(rule_id: str) -> Json:
    address = documentation()
    uri = {"helpUri": f"{address}#{rule_id.lower()}"} if address else {}
    if rule_id in OWN_RULES:
        return {"id": rule_id, "shortDescription": {"text": OWN_RULES[rule_id]}, **uri}
    rule = all_rules()[rule_id]
    page = render_page(rule)
    return {
        "id": rule_id,
        "shortDescription": {"text": rule.title},
        "help": {"text": page, "markdown": page},
        **uri,
        "properties": {
            "step": "→".join(rule.step),
            "safety": rule.safety.value,
            "class": rule.klass,
        },
    }


def documentation() -> str | None:
    """The address of docs/rules.md: `Documentation` in the project's metadata, if it has one."""
    for line in metadata("nki-migrate").get_all("Project-URL") or ():
        label, _, address = line.partition(", ")
        if label == "Documentation":
            return address
    return None


# -- results


def _results(result: FileResult, ids: list[str]) -> Iterator[Json]:
    lines = python_lines(result.before)
    seen: Counter[str] = Counter()
    for finding in result.findings:
        text = lines[finding.line - 1] if 0 < finding.line <= len(lines) else ""
        mark = fingerprint(finding, text)
        seen[mark] += 1
        entry: Json = {
            "ruleId": finding.rule,
            "ruleIndex": ids.index(finding.rule),
            "level": finding.severity.value,
            "message": {"text": finding.message},
            "locations": [_location(finding)],
            "partialFingerprints": {FINGERPRINT: f"{mark}:{seen[mark]}"},
            "properties": _facts(finding),
        }
        if finding.edits:
            entry["fixes"] = [_fix(finding, lines)]
        yield entry


def fingerprint(finding: Finding, line: str) -> str:
    """What stays the same when the code around a finding moves: rule, kernel, the line's words."""
    words = " ".join(line.split())
    known = "\n".join((finding.rule, finding.kernel or "", words))
    return hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _facts(finding: Finding) -> Json:
    facts: Json = {"safety": finding.safety.value, "applied": finding.applied}
    facts |= {"assumption": finding.assumption} if finding.assumption else {}
    return facts | ({"basis": list(finding.basis)} if finding.basis else {})


def _location(finding: Finding) -> Json:
    location: Json = {
        "physicalLocation": {
            "artifactLocation": _artifact(finding.path),
            "region": _region(finding),
        }
    }
    if finding.kernel:
        location["logicalLocations"] = [{"name": finding.kernel, "kind": "function"}]
    return location


def _region(place: Finding | Edit) -> Json:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }


def _deleted(edit: Edit, lines: list[str]) -> Json:
    """The region of an edit; one that takes a line ending with it ends where the next begins."""
    region = _region(edit)
    last = lines[edit.end_line - 1] if edit.end_line <= len(lines) else ""
    if edit.end_column > len(last.rstrip("\r\n")) + 1:
        return region | {"endLine": edit.end_line + 1, "endColumn": 1}
    return region


def _artifact(path: str) -> Json:
    """The address of a file, below the folder that we run in where it lies there."""
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
    fix: Json = {
        "description": {"text": finding.message},
        "artifactChanges": [
            {"artifactLocation": _artifact(finding.path), "replacements": replacements}
        ],
    }
    if finding.safety is Safety.UNSAFE:
        fix["properties"] = {"safety": "unsafe", "assumption": finding.assumption}
    return fix


def _failure(result: FileResult) -> Json:
    place = {"physicalLocation": {"artifactLocation": _artifact(result.path)}}
    return {"level": "error", "message": {"text": result.error}, "locations": [place]}
