"""A kernel's source against what the compiler of a version accepts, without running it."""

from neuroncore.checks.subset.check import (
    calls_reached,
    check_function,
    check_script,
    check_source,
)
from neuroncore.checks.subset.rules import RULES, Rule

__all__ = ["RULES", "Rule", "calls_reached", "check_function", "check_script", "check_source"]
