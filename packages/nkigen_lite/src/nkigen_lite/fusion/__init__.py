"""Fusion groups: iteration domains, tile sizes under the SBUF budget, the order of operations."""

from nkigen_lite.fusion.array_view import ArrayView
from nkigen_lite.fusion.budget import has_reduction, in_rows
from nkigen_lite.fusion.groups import Group, Plan, Rejection, plan_groups
from nkigen_lite.fusion.iteration_domain import IterationDomain, strip_domain

__all__ = [
    "ArrayView",
    "Group",
    "IterationDomain",
    "Plan",
    "Rejection",
    "has_reduction",
    "in_rows",
    "plan_groups",
    "strip_domain",
]
