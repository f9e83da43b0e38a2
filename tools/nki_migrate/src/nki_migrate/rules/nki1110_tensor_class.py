"""NKI1110: the class `nki.tensor`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding, Safety
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site


def _check(node: ast.Attribute | ast.Name, site: Site) -> Iterator[Finding]:
    if site.canonical(node) != "nki.tensor":
        return
    parent = site.index.parent(node)
    subscript = parent if isinstance(parent, ast.Subscript) else node
    holder = site.index.parent(subscript)
    if isinstance(holder, ast.arg) and holder.annotation is subscript:
        said = "`nki.tensor` is gone: parameters need no annotation"
        yield site.finding("NKI1110", node, said, edits=[_without_annotation(holder, site)])
    elif isinstance(holder, ast.FunctionDef) and holder.returns is subscript:
        said = "`nki.tensor` is gone: results need no annotation"
        yield site.finding("NKI1110", node, said, edits=[_without_arrow(subscript, site)])
    elif site.request.target == "0.2" and isinstance(node, ast.Attribute):
        text = f"{site.source(node.value)}.meta.tensor"
        edits = [site.replace(node, text)]
        yield site.finding("NKI1110", node, f"`nki.tensor` is `{text}`", edits=edits)
    else:
        said = "`nki.tensor` is gone; SDK 2.28 has `nki.meta.tensor`, later versions name no class"
        yield site.finding("NKI1110", node, said, safety=Safety.MANUAL)


def _without_annotation(argument: ast.arg, site: Site) -> Edit:
    return site.replace(argument, argument.arg)


def _without_arrow(annotation: ast.AST, site: Site) -> Edit:
    """The annotation of a result with its `->`, which is in the same line or in one above."""
    line, column, end_line, end_column = site.index.source.span(annotation)
    text = site.index.source.lines[line - 1][: column - 1]
    while "->" not in text:
        line -= 1
        text = site.index.source.lines[line - 1]
    start = len(text[: text.rindex("->")].rstrip())
    return Edit(line, start + 1, end_line, end_column, "")


HOOKS = Hooks(nodes=(ast.Attribute, ast.Name), check=_check)
