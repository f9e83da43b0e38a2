"""NKI1250: ranges of 0.3 to 0.5."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULE"]

_DEPRECATED = {"nl.affine_range", "nl.sequential_range"}


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    language = site.index.alias_for("nl")
    asked = "0.3" <= site.request.target <= "0.5"  # 0.2 has all three, in 0.6 they are `range`
    if site.canonical(node.func) not in _DEPRECATED or not asked or language is None:
        return
    said = f"`{site.source(node.func)}` is deprecated: every loop is unrolled"
    edits = [site.replace(node.func, f"{language}.static_range")]
    yield site.finding("NKI1250", node, said, severity=Severity.WARNING, edits=edits)


_BAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    for i in nl.affine_range(4):
        for j in nl.sequential_range(1, 8):
            pass
"""
_GOOD = """
import nki
import nki.language as nl

@nki.jit
def kernel(x):
    for i in nl.static_range(4):
        for j in nl.static_range(1, 8):
            pass
"""

RULE = Rule(
    id="NKI1250",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="`affine_range` and `sequential_range` are `static_range`",
    page="""\
Old: `nl.affine_range(n)`, `nl.sequential_range(n)`

New: the same in 0.2, `nl.static_range(n)` in 0.3 to 0.5, `range(n)` in 0.6 (NKI5004)

From 0.2 on all loops are unrolled: compile time and the number of tiles grow with the count.
""",
    examples=(Example.of(_BAD, _GOOD, target="0.5"),),
    nodes=(ast.Call,),
    check=_check,
)
