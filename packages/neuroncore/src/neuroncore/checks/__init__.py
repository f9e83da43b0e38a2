"""Checks of a run: each an observer on its own, each with findings that read like errors."""

from neuroncore.checks.report import Report, from_violation
from neuroncore.checks.table import CHECKS, Check, check, resolve_checks, watching
from neuroncore.findings import Finding

__all__ = [
    "CHECKS",
    "Check",
    "Finding",
    "Report",
    "check",
    "from_violation",
    "resolve_checks",
    "watching",
]
