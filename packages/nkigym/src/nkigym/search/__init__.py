"""Search over a space of programs, behind one protocol."""

from nkigym.search.budget import Budget, Constraints, Settings, parse_budget
from nkigym.search.errors import (
    BudgetError,
    ConstraintError,
    ScheduleError,
    SearchError,
)
from nkigym.search.explorer import Node, SearchProgress
from nkigym.search.protocol import RejectedStepError, SearchSpace
from nkigym.search.report import Report
from nkigym.search.search import Outcome, Plan, search, used_seed
from nkigym.search.strategies import STRATEGIES

__all__ = [
    "STRATEGIES",
    "Budget",
    "BudgetError",
    "ConstraintError",
    "Constraints",
    "Node",
    "Outcome",
    "Plan",
    "RejectedStepError",
    "Report",
    "ScheduleError",
    "SearchError",
    "SearchProgress",
    "SearchSpace",
    "Settings",
    "parse_budget",
    "search",
    "used_seed",
]
