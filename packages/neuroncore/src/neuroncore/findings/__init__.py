"""Findings and the reports made of them: shared by checks, verifiers and codemods.

Needs only the standard library. `neuroncore.findings.formats` has the output
formats.
"""

from neuroncore.findings.finding import (
    Certainty,
    Edit,
    Finding,
    Position,
    Region,
    Safety,
    Severity,
    python_lines,
)
from neuroncore.findings.notebook_html import ShownAsHtml
from neuroncore.findings.report import Case, FileReport, Report, RuleText

__all__ = [
    "Case",
    "Certainty",
    "Edit",
    "FileReport",
    "Finding",
    "Position",
    "Region",
    "Report",
    "RuleText",
    "Safety",
    "Severity",
    "ShownAsHtml",
    "python_lines",
]
