"""Checks of a run: each an observer on its own, each with findings that read like errors."""

from neuroncore.checks._check import Check
from neuroncore.checks._registry import CHECKS, check, resolve_checks, watching
from neuroncore.checks.memory import Memory
from neuroncore.checks.report import Report
from neuroncore.findings import Finding

__all__ = [
    "CHECKS",
    "Check",
    "Finding",
    "Memory",
    "Report",
    "check",
    "resolve_checks",
    "watching",
]
