"""NKI1130: `nl.par_dim` is gone."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.lower.creation import create
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULE"]


def _check(node: ast.Attribute | ast.Name, site: Site) -> Iterator[Finding]:
    """In an annotation it stood for a number: `Tuple[int, nl.par_dim, int]`."""
    if site.canonical(node) != "nl.par_dim" or isinstance(site.index.parent(node), ast.Attribute):
        return
    inner: ast.AST = node
    for outer in site.index.ancestors(node):
        if isinstance(outer, ast.arg | ast.AnnAssign) and outer.annotation is inner:
            message = "`nl.par_dim` in an annotation is a number"
            yield site.finding("NKI1130", node, message, edits=[site.replace(node, "int")])
        inner = outer


_BAD = """
tile = nl.ndarray((nl.par_dim(128), 512), dtype=nl.float32, buffer=nl.sbuf)
"""
_GOOD = """
tile = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
"""

RULE = Rule(
    id="NKI1130",
    step=("0.1", "0.2"),
    klass="a",
    safety=Safety.SAFE,
    title="`nl.par_dim` is gone",
    page="""\
Old: `nl.ndarray((nl.par_dim(128), 512), …)`

New: `nl.ndarray((128, 512), …)`

The first dimension of a tensor on chip is the partition dimension, always.
""",
    nodes=(ast.Attribute, ast.Name),
    check=_check,
    calls={"nl.ndarray": create},
    examples=(Example.kernel(_BAD, _GOOD),),
)
