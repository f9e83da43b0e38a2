"""NKI1256: Python that the kernel compiler does not read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_FORMS: dict[type[ast.AST], str] = {
    ast.Try: "`try`", ast.Lambda: "`lambda`", ast.Set: "a set", ast.SetComp: "a set",
    ast.GeneratorExp: "a generator expression",
}  # fmt: skip


def _check(node: ast.AST, site: Site) -> Iterator[Finding]:
    form = _form(node, site)
    if form is not None and _in_body(node, site):
        said = f"the kernel compiler does not read {form}: restructure it"
        yield site.finding("NKI1256", node, said, severity=Severity.WARNING, safety=Safety.MANUAL)


def _form(node: ast.AST, site: Site) -> str | None:
    if type(node) in _FORMS:
        return _FORMS[type(node)]
    if isinstance(node, ast.With):
        return None if all(_is_language(i.context_expr, site) for i in node.items) else "`with`"
    if isinstance(node, ast.Dict):
        keys = [k for k in node.keys if isinstance(k, ast.Constant)]
        return None if all(isinstance(k.value, str) for k in keys) else "keys other than strings"
    if isinstance(node, ast.Call):
        starred = any(isinstance(a, ast.Starred) for a in node.args)
        return "`*` arguments" if starred or any(k.arg is None for k in node.keywords) else None
    return None


def _is_language(node: ast.expr, site: Site) -> bool:
    """`nl.no_reorder()`, or something of 0.1 that a rule of its own speaks of."""
    name = site.canonical(node.func) if isinstance(node, ast.Call) else None
    return name is not None and name.partition(".")[0] in {"nl", "nki", "ncc"}


def _in_body(node: ast.AST, site: Site) -> bool:
    """In the body of kernel code: decorators and defaults belong to the host."""
    function = site.function_of(node)
    chain = [node, *site.index.ancestors(node)]
    return function is not None and any(statement in chain for statement in function.node.body)


HOOKS = Hooks(nodes=(*_FORMS, ast.With, ast.Dict, ast.Call), check=_check)
