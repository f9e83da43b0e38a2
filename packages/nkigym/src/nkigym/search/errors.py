"""Errors of searches."""

from __future__ import annotations

from neuroncore.errors import KernelError


class SearchError(KernelError):
    """A search that is not possible as requested; the base of the others."""


class BudgetError(SearchError):
    """A budget that allows nothing, or that is not a budget."""


class ConstraintError(SearchError):
    """Constraints that contradict one another or that no candidate can satisfy."""


class ScheduleError(SearchError):
    """A schedule that does not replay."""
