"""Names without a successor, and renamed ones."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_TODO = "# TODO(nki-migrate NKI1106)"


def _check(node: ast.Attribute | ast.Assign, site: Site) -> Iterator[Finding]:
    """NKI1106: `nki.compiler` outside of decorators and buffers."""
    if isinstance(node, ast.Assign):
        yield from _emptied(node, site)
        return
    name = site.canonical(node) or ""
    parent = site.index.parent(node)
    if not name.startswith("ncc.") or isinstance(parent, ast.Attribute):
        return
    if site.function_of(node) is None and not _is_decorator(node, site):
        message = f"`{site.source(node)}` is gone with `nki.compiler`"
        if isinstance(parent, ast.Assign) and site.index.parent(parent) is site.index.source.tree:
            empty = f"{message}: None lets the file be imported"
            yield site.finding("NKI1106", node, empty, edits=[site.replace(node, "None")])
        yield site.manual("NKI1106", node, message)


def _emptied(node: ast.Assign, site: Site) -> Iterator[Finding]:
    """Findings about names that an earlier run replaced by None."""
    lines = site.index.source.lines
    above = lines[node.lineno - 2] if node.lineno > 1 else ""
    if isinstance(node.value, ast.Constant) and node.value.value is None and _TODO in above:
        message = above.partition(": ")[2].strip()
        yield site.manual("NKI1106", node, message)


def _is_decorator(node: ast.AST, site: Site) -> bool:
    chain = [node, *site.index.ancestors(node)]
    return any(
        isinstance(up, ast.FunctionDef) and down in up.decorator_list
        for down, up in itertools.pairwise(chain)
    )


_LAUNCHERS = {"torch_neuronx.nki_jit", "jax_neuronx.nki_call"}


def _check_framework_launch(node: ast.expr, site: Site) -> Iterator[Finding]:
    """NKI1109: launchers of the frameworks."""
    name = site.canonical(node)
    if name in _LAUNCHERS:
        message = (
            f"`{name}` is gone: decorate with `nki.jit`, call the kernel, take what it returns"
        )
        yield site.manual("NKI1109", node, message)


def _check_tensor_class(node: ast.Attribute | ast.Name, site: Site) -> Iterator[Finding]:
    """NKI1110: the class `nki.tensor`."""
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
        yield site.manual("NKI1110", node, said)


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


_OLD, _NEW = "total_available_sbuf_size", "sbuf_fmax_bytes"


def _check_sbuf_size(node: ast.Attribute, site: Site) -> Iterator[Finding]:
    """NKI3004: `tile_size.total_available_sbuf_size` has a new name."""
    if site.canonical(node) == f"nl.tile_size.{_OLD}":
        _, _, line, column = site.index.source.span(node)
        edit = Edit(line, column - len(_OLD), line, column, _NEW)
        yield site.finding("NKI3004", node, f"{_OLD} is called {_NEW}", edits=[edit])


HOOKS = {
    "NKI1106": Hooks(nodes=(ast.Attribute, ast.Assign), check=_check),
    "NKI1109": Hooks(nodes=(ast.Attribute, ast.Name), check=_check_framework_launch),
    "NKI1110": Hooks(nodes=(ast.Attribute, ast.Name), check=_check_tensor_class),
    "NKI3004": Hooks(nodes=(ast.Attribute,), check=_check_sbuf_size),
}
