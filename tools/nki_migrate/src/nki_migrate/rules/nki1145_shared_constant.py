"""NKI1145: the dtype of shared constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULE"]


def _check(node: ast.Call, site: Site) -> Iterator[Finding]:
    if site.canonical(node.func) != "nl.shared_constant" or site.request.target < "0.3":
        return
    if site.function_of(node) is None or any(isinstance(a, ast.Starred) for a in node.args):
        return
    named = {k.arg: k.value for k in node.keywords}
    constant = node.args[0] if node.args else named.get("constant")
    dtype = node.args[1] if len(node.args) > 1 else named.get("dtype")
    message = "`nl.shared_constant` takes no dtype from 0.3 on: the array is cast"
    if constant is None or dtype is None:
        return
    if isinstance(dtype, ast.Constant):  # None says nothing, a string is no NKI dtype
        cast = "" if dtype.value is None else f".astype({site.source(dtype)})"
    else:
        cast = f".astype({site.source(dtype)})"
    array = site.source(constant)
    if not isinstance(constant, ast.Call | ast.Name | ast.Attribute | ast.Subscript):
        array = f"({array})"
    edit = site.replace(node, f"{site.source(node.func)}({array}{cast})")
    yield site.finding("NKI1145", node, message, edits=[edit])


_BAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np

@nki.jit
def kernel(x):
    identity = nl.shared_constant(np.identity(128), dtype=nl.bfloat16)
"""
_GOOD = """
import nki
import nki.language as nl
import numpy as np

@nki.jit
def kernel(x):
    identity = nl.shared_constant(np.identity(128).astype(nl.bfloat16))
"""

RULE = Rule(
    id="NKI1145",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.SAFE,
    title="`nl.shared_constant` takes no dtype from 0.3 on",
    page="""\
Old: `nl.shared_constant(array, dtype=nl.bfloat16)`

New: `nl.shared_constant(array.astype(nl.bfloat16))`
""",
    examples=(Example.of(_BAD, _GOOD, target="0.3"),),
    nodes=(ast.Call,),
    check=_check,
)
