"""What a search cannot do, and how that is said."""

from __future__ import annotations

from neuroncore.errors import KernelError


class SearchError(KernelError):
    """A search that cannot be done as asked; the base of the others."""


class BudgetError(SearchError):
    """A budget that allows nothing, or that is no budget."""


class ConstraintError(SearchError):
    """Constraints that contradict one another or that nothing can meet."""


class EmptySpaceError(SearchError):
    """A space in which no step can be taken from the root."""


class ScheduleError(SearchError):
    """A schedule that does not replay."""
