"""One line per finding: `path:line:col: NKI1172 [manual] message`."""

from __future__ import annotations

from neuroncore.findings.formats.text import closing, head
from neuroncore.findings.report import Report


def render(report: Report) -> str:
    """The lines of all findings, then the same closing lines as in a text."""
    findings = [] if report.quiet else report.findings
    lines = [(f"{f.region}: " if f.place else "") + head(f, f.label) for f in findings]
    result = "\n".join(["", *report.problems, report.result]) if report.result else ""
    return "\n".join([*lines, *closing(report)]) + "\n" + result
