"""From graphs to kernel programs: iteration spaces, fusion groups, tiles, products of matrices."""

from nkigen_lite.lower.budget import has_reduction, in_strips
from nkigen_lite.lower.groups import Group, Plan, Refusal, plan_groups
from nkigen_lite.lower.joining import Arrays
from nkigen_lite.lower.kernel import lower, returned
from nkigen_lite.lower.patterns import in_machine_terms
from nkigen_lite.lower.refuse import LoweringError
from nkigen_lite.lower.replicate import Replicas
from nkigen_lite.lower.sources import Source
from nkigen_lite.lower.spaces import Space, strip_space
from nkigen_lite.lower.steps import Step
from nkigen_lite.lower.tiles import Tile, Tiles
from nkigen_lite.lower.writer import Writer

__all__ = [
    "Arrays", "Group", "LoweringError", "Plan", "Refusal", "Replicas", "Source", "Space", "Step",
    "Tile", "Tiles", "Writer", "has_reduction", "in_machine_terms", "in_strips", "lower",
    "plan_groups", "returned", "strip_space",
]  # fmt: skip
