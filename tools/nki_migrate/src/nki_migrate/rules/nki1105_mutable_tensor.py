"""NKI1105: in/out arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from neuroncore.findings import Finding, Safety
from nki_migrate.rewriting.context.mutable_parameters import is_in_out
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_MARK = re.compile(r"\b(\w+)\.(?:tensor\[\s*\w+\.mutable\s*\]|mutable_tensor)")


def _check(node: ast.FunctionDef | ast.expr, site: Site) -> Iterator[Finding]:
    if isinstance(node, ast.FunctionDef):
        yield from _parameters(node, site)
    elif site.canonical(node) == "nki.typing.mutable_tensor":
        owner = next((a for a in site.index.ancestors(node) if isinstance(a, ast.arg)), None)
        if owner is None or not _is_plain(owner, site):
            message = "tensors that a kernel changes in place have no documented equivalent"
            yield site.finding("NKI1105", node, message, safety=Safety.MANUAL)


def _is_plain(owner: ast.arg, site: Site) -> bool:
    """Whether the finding of the parameter's function speaks of this annotation."""
    around = (a for a in site.index.ancestors(owner) if isinstance(a, ast.FunctionDef))
    function = next(around, None)
    return function is not None and _replaced(function, owner, site) is not None


def _replaced(function: ast.FunctionDef, owner: ast.arg, site: Site) -> str | None:
    """The annotation without the mark; None if the parameter is not changed and returned."""
    if owner.annotation is None or not is_in_out(function, owner.arg):
        return None
    text = _MARK.sub(r"\1.tensor", site.source(owner.annotation))
    return None if "mutable" in text else text


def _parameters(function: ast.FunctionDef, site: Site) -> Iterator[Finding]:
    arguments = function.args
    for owner in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        text = _replaced(function, owner, site)
        if text is not None and owner.annotation is not None:
            message = f"`{owner.arg}` is written and returned: it needs no mark"
            edit = site.replace(owner.annotation, text)
            basis = (f"every return of `{function.name}` has `{owner.arg}`",)
            yield site.finding("NKI1105", owner.annotation, message, edits=[edit], basis=basis)


HOOKS = Hooks(nodes=(ast.FunctionDef, ast.Attribute, ast.Name), check=_check)
