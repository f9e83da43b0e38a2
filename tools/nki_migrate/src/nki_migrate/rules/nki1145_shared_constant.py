"""NKI1145: the dtype of shared constants."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


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
    if isinstance(dtype, ast.Constant):  # None has no dtype, a string is not an NKI dtype
        cast = "" if dtype.value is None else f".astype({site.source(dtype)})"
    else:
        cast = f".astype({site.source(dtype)})"
    array = site.source(constant)
    if not isinstance(constant, ast.Call | ast.Name | ast.Attribute | ast.Subscript):
        array = f"({array})"
    edit = site.replace(node, f"{site.source(node.func)}({array}{cast})")
    yield site.finding("NKI1145", node, message, edits=[edit])


HOOKS = Hooks(nodes=(ast.Call,), check=_check)
