"""Errors of searches."""

from __future__ import annotations

from neuroncore.errors import KernelError, OptionError


class SearchError(KernelError):
    """A search that is not possible as requested; the base of the others."""


class BudgetError(SearchError, OptionError):
    """A budget that allows nothing, or that is not a budget."""


class ConstraintError(SearchError, OptionError):
    """Constraints that contradict one another, the kernel, or what there is."""


class ScheduleError(SearchError):
    """A schedule that does not replay."""
