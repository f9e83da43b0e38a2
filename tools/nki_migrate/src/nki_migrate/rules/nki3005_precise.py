"""Simulation keeps the precision of the tiles unless it is told otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Example, Rule, Site

_VARIABLE = "NKI_PRECISE_FP"


def _check(node: ast.Constant, site: Site) -> Iterator[Finding]:
    if node.value == _VARIABLE:
        said = f"{_VARIABLE} is 1 by default from 0.4 on: simulated results differ where it was 0"
        yield site.finding("NKI3005", node, said, severity=Severity.WARNING, safety=Safety.MANUAL)


_BAD = """
import os

import nki

precise = os.environ.get("NKI_PRECISE_FP", "0")
"""

RULE = Rule(
    id="NKI3005",
    step=("0.3", "0.4"),
    klass="c",
    safety=Safety.MANUAL,
    title="`NKI_PRECISE_FP` is 1 by default",
    page="""\
Results of `nki.simulate` that were recorded with 0.3 may differ in the last bits. Set the variable,
or record them again. Only files that name the variable are reported.
""",
    examples=(Example.of(_BAD, _BAD),),
    nodes=(ast.Constant,),
    check=_check,
)
