"""A tensor that a kernel returns lives in shared HBM."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.arguments import keyword
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


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


HOOKS = Hooks(nodes=(ast.Assign,), check=_check)
