"""Checks of a run: each an observer on its own, each with findings that read like errors."""

from neuroncore.checks.findings import Finding, Report, from_violation

__all__ = ["Finding", "Report", "from_violation"]
