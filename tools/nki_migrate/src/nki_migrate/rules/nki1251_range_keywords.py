"""NKI1251: scheduling keywords of ranges."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULE"]

_RANGES = {"nl.affine_range", "nl.sequential_range", "nl.static_range"}
_GONE = ("multi_buffer", "precise_schedule", "directives")


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    if site.canonical(node.func) not in _RANGES:
        return
    gone = [k.arg for k in node.keywords if k.arg in _GONE]
    if gone:
        message = f"ranges take no {', '.join(f'`{k}=`' for k in gone if k)}"
        yield site.finding("NKI1251", node, message, edits=[site.without_keyword(node, *_GONE)])


_BAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@nki.jit
def kernel(x):
    for i in nl.affine_range(4, multi_buffer=2):
        pass
"""
_GOOD = """
import nki
import nki.language as nl

@nki.jit
def kernel(x):
    for i in nl.affine_range(4):
        pass
"""

RULE = Rule(
    id="NKI1251",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="ranges lose their scheduling keywords",
    page="""\
Old: `nl.affine_range(n, multi_buffer=2, precise_schedule=True)`

New: `nl.affine_range(n)`

The keywords raise a TypeError at import on 0.6.
""",
    examples=(Example.of(_BAD, _GOOD),),
    nodes=(ast.Call,),
    check=_check,
)
