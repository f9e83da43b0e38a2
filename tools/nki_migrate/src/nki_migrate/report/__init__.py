"""Reports of a run of the codemod; the output formats are `neuroncore.findings.formats`."""

from nki_migrate.report.report import Mode, make_report
from nki_migrate.report.summary import summarize

__all__ = ["Mode", "make_report", "summarize"]
