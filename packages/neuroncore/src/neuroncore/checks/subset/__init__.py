"""A kernel's source against what the compiler of a version accepts, without running it."""

from neuroncore.checks.subset.check import (
    check_function,
    check_script,
    check_source,
    loops_reached,
)
from neuroncore.checks.subset.rules import RULES, SubsetRule

__all__ = ["RULES", "SubsetRule", "check_function", "check_script", "check_source", "loops_reached"]
