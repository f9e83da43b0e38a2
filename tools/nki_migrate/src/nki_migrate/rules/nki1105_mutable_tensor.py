"""NKI1105: in/out arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULE"]


def _check(node: ast.expr, site: Site) -> Iterator[Finding]:
    if site.canonical(node) == "nki.typing.mutable_tensor":
        message = "tensors that a kernel changes in place have no documented equivalent"
        yield site.finding("NKI1105", node, message, safety=Safety.MANUAL)


_BAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.typing as nt

@nki.jit
def kernel(cache: nt.mutable_tensor):
    return cache
"""
_GOOD = """
import nki
import nki.typing as nt

# TODO(nki-migrate NKI1105): tensors that a kernel changes in place have no documented equivalent
@nki.jit
def kernel(cache: nt.mutable_tensor):
    return cache
"""

RULE = Rule(
    id="NKI1105",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="in/out arguments have no documented equivalent",
    page="""\
Old: `def kernel(cache: nt.mutable_tensor)`

New: return the new tensor; by hand
""",
    examples=(Example.of(_BAD, _GOOD),),
    nodes=(ast.Attribute, ast.Name),
    check=_check,
)
