"""JSON lines: one object per finding, and one per file that failed."""

from __future__ import annotations

import json

from neuroncore.findings import FileReport, Finding, Region, Report
from neuroncore.findings.formats import FORMATS


def test_each_finding_is_a_line_and_a_failed_file_has_no_rule():
    found = Finding("E1", "not ordered", Region("k.py", 3, 1, 3, 5))
    report = Report("tool", [FileReport("k.py", (found,)), FileReport("b.py", error="no file")])

    first, second = map(json.loads, FORMATS["jsonl"](report).splitlines())

    assert (first["rule"], first["path"], first["line"]) == ("E1", "k.py", 3)
    assert (second["rule"], second["message"]) == (None, "no file")
