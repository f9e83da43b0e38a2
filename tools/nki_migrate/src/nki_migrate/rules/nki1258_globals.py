"""NKI1258: globals that change."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.index import walk
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULE"]


def _check(node: ast.FunctionDef, site: Site) -> Iterator[Finding]:
    function = site.function_of(node)
    if function is None or function.node is not node:
        return
    changing = site.index.changing
    names = [n for s in node.body for n in walk(s) if isinstance(n, ast.Name)]
    own = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | set(function.parameters)
    read = {n.id for n in names} - own
    for name in sorted(read & changing):
        said = f"`{name}` changes, and results are cached by arguments: pass it as one"
        yield site.finding("NKI1258", node, said, severity=Severity.WARNING, safety=Safety.MANUAL)


_BAD = """
import neuronxcc.nki as nki

scale = 1.0

def set_scale(value):
    global scale
    scale = value

@nki.jit
def kernel(x):
    factor = scale
    return x
"""
_GOOD = _BAD.replace("import neuronxcc.nki as nki", "import nki")

RULE = Rule(
    id="NKI1258",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="globals that change are arguments",
    page="""\
Old: a kernel that reads a name which some function sets with `global`

New: a parameter; by hand

From 0.2 on a compiled kernel is found again by its arguments alone: it keeps the value that the
name had when it was compiled.
""",
    examples=(Example.of(_BAD, _GOOD),),
    nodes=(ast.FunctionDef,),
    check=_check,
)
