"""Checks of a run: each an observer on its own, each with findings that read like errors."""

from neuroncore.checks.findings import Finding, Report, from_violation
from neuroncore.checks.table import CHECKS, Check, check, resolve_checks, watching

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
