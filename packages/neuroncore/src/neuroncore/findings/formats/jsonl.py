"""JSON lines: the findings of a JSON document, one per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from neuroncore.findings.formats.json import as_json
from neuroncore.findings.report import Report


def render(report: Report) -> str:
    """One line per finding; a file that failed is a line whose `rule` is null."""
    return "".join(json.dumps(entry, allow_nan=False) + "\n" for entry in _entries(report))


def _entries(report: Report) -> Iterator[dict[str, Any]]:
    for file in report.files:
        if file.error is not None:
            failed = {"rule": None, "path": file.path}
            yield failed | {"severity": "error", "message": file.error}
        else:
            yield from (as_json(finding, report) for finding in file.findings)
