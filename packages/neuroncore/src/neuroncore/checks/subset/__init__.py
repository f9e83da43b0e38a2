"""A kernel's source against what the compiler of a version accepts, without running it."""

from pathlib import Path

from neuroncore.checks._check import Check
from neuroncore.checks.subset.check import (
    check_function,
    check_script,
    check_source,
    loops_reached,
)
from neuroncore.checks.subset.rules import RULES, SubsetRule
from neuroncore.findings import Finding
from neuroncore.options import Options

__all__ = [
    "CHECK",
    "RULES",
    "SubsetRule",
    "check_function",
    "check_script",
    "check_source",
    "loops_reached",
]


def _check(script: Path, nki: str, options: Options) -> list[Finding]:
    return check_script(script, nki, options=options)


CHECK = Check("subset", "a version's compiler takes the kernels' source", source=_check)
