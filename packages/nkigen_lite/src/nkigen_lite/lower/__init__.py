"""From graphs to kernel programs: iteration spaces, fusion groups, tiles, products of matrices."""

from nkigen_lite.lower.groups import Group, Plan, Refusal, plan_groups
from nkigen_lite.lower.kernel import lower, returned
from nkigen_lite.lower.patterns import in_machine_terms
from nkigen_lite.lower.refuse import LoweringError

__all__ = [
    "Group", "LoweringError", "Plan", "Refusal", "in_machine_terms", "lower", "plan_groups",
    "returned",
]  # fmt: skip
