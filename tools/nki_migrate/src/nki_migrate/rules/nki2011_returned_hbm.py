"""A tensor that a kernel returns lives in shared HBM."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.rules.arguments import keyword
from nki_migrate.rules.rule import Example, Rule, Site


def _check(node: ast.Assign, site: Site) -> Iterator[Finding]:
    function = site.function_of(node)
    language = site.index.alias_for("nl")
    if function is None or not function.entry or language is None:
        return
    if not isinstance(node.value, ast.Call) or not isinstance(node.targets[0], ast.Name):
        return
    given = keyword(node.value, "buffer")
    if given is None or site.canonical(given.value) not in ("nl.hbm", "nl.private_hbm"):
        return
    if node.targets[0].id in _returned_names(function.node):
        yield site.finding(
            "NKI2011",
            given.value,
            f"{node.targets[0].id} is returned: it has to be in shared HBM",
            edits=[site.replace(given.value, f"{language}.shared_hbm")],
        )


def _returned_names(function: ast.AST) -> set[str]:
    returns = (node.value for node in ast.walk(function) if isinstance(node, ast.Return))
    values = (
        value
        for returned in returns
        for value in (returned.elts if isinstance(returned, ast.Tuple) else [returned])
    )
    return {value.id for value in values if isinstance(value, ast.Name)}


_BAD = """
import nki
import nki.isa as nisa
import nki.language as nl

@nki.jit
def copy(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
"""

RULE = Rule(
    id="NKI2011",
    step=("0.2", "0.3"),
    klass="b",
    safety=Safety.SAFE,
    title="returned tensors are in `nl.shared_hbm`",
    page="From 0.3 `nl.hbm` is the core's private HBM, and a kernel may return shared HBM only.\n",
    examples=(Example.of(_BAD, _BAD.replace("buffer=nl.hbm", "buffer=nl.shared_hbm")),),
    nodes=(ast.Assign,),
    check=_check,
)
