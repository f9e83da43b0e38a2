"""Search over a space of programs, behind one protocol."""

from nkigym.search.budget import Budget, parse_budget
from nkigym.search.constraints import Constraints
from nkigym.search.errors import (
    BudgetError,
    ConstraintError,
    EmptySpaceError,
    ScheduleError,
    SearchError,
)
from nkigym.search.explorer import Node, Seen
from nkigym.search.loop_space import LoopSpace
from nkigym.search.report import Report
from nkigym.search.roofline import Rooflines
from nkigym.search.search import Outcome, Plan, search
from nkigym.search.settings import Settings
from nkigym.search.space import RefusedStepError, SearchSpace
from nkigym.search.strategies import STRATEGIES
from nkigym.search.tile_space import TileSpace

__all__ = [
    "STRATEGIES",
    "Budget",
    "BudgetError",
    "ConstraintError",
    "Constraints",
    "EmptySpaceError",
    "LoopSpace",
    "Node",
    "Outcome",
    "Plan",
    "RefusedStepError",
    "Report",
    "Rooflines",
    "ScheduleError",
    "SearchError",
    "SearchSpace",
    "Seen",
    "Settings",
    "TileSpace",
    "parse_budget",
    "search",
]
