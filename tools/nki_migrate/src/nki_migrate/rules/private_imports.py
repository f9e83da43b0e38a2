"""NKI1107: imports of what is not public, and which of them nothing needs any more."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding, Safety
from nki_migrate.rules.site import Site

_TYPES = ("neuronxcc.nki.isa.constants", "neuronxcc.starfish")
_ENUMERATIONS = {"dge_mode", "dma_engine", "engine", "matmul_perf_mode", "oob_mode", "reduce_cmd"}


def _rule_of(path: str) -> str:
    """Types and enumerations of the compiler have successors, private kernels have none."""
    return "NKI1108" if path.startswith(_TYPES) else "NKI1107"


def left(node: ast.stmt, site: Site, path: str) -> Finding:
    """The import stays, for a human."""
    if _rule_of(path) == "NKI1108":
        said = f"`{path}` is the compiler's own: enumerations are in `nki.isa`, dtypes in `nl`"
        return site.finding("NKI1108", node, said, safety=Safety.MANUAL)
    return site.finding(
        "NKI1107",
        node,
        f"`{path}` has no counterpart under `nki`; the NKI Library may hold a replacement",
        safety=Safety.MANUAL,
    )


def check_private_import(node: ast.Import, alias: ast.alias, site: Site) -> Iterator[Finding]:
    """`import neuronxcc.nki.compiler as ncc`: goes where only removed decorators mention it."""
    bound = alias.asname
    if bound is None or len(node.names) > 1 or not _goes_with_decorators(bound, site):
        yield left(node, site, alias.name)
        return
    yield site.finding(
        "NKI1107", node, f"nothing needs `{alias.name}` any more", edits=[site.remove_line(node)]
    )


def _goes_with_decorators(name: str, site: Site) -> bool:
    if "nki-migrate:" in site.index.source.text or not site.request.selects("NKI1114"):
        return False  # a comment may keep a kernel with its decorators
    uses = _uses(name, site)
    return all(_decorates_kernel(use, site) for use in uses)


def _uses(name: str, site: Site) -> list[ast.Name]:
    return [n for n in site.index.nodes if isinstance(n, ast.Name) and n.id == name]


def _decorates_kernel(node: ast.AST, site: Site) -> bool:
    """Whether a use is inside a decorator that NKI1114 removes."""
    inner = node
    for outer in site.index.ancestors(node):
        if isinstance(outer, ast.FunctionDef):
            function = site.function_of(outer)
            on_kernel = function is not None and function.node is outer
            return on_kernel and inner in outer.decorator_list and _is_compiler(inner, site)
        inner = outer
    return False


def _is_compiler(decorator: ast.AST, site: Site) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (site.canonical(called) or "").startswith("ncc.")


def check_private_names(node: ast.ImportFrom, module: str, site: Site) -> Iterator[Finding]:
    """`from neuronxcc.… import …`: enumerations have a new home, types that annotate go."""
    names = [a.asname or a.name for a in node.names]
    if module == "neuronxcc.nki.isa.constants" and {a.name for a in node.names} <= _ENUMERATIONS:
        what = ", ".join(site.source(a) for a in node.names)
        edit = site.replace(node, f"from nki.isa import {what}")
        yield site.finding("NKI1108", node, "enumerations are in `nki.isa`", edits=[edit])
        return
    annotated = [_annotations(name, site) for name in names]
    if "*" in names or any(a is None for a in annotated) or not any(annotated):
        yield left(node, site, module)
        return
    edits = [edit for found in annotated for edit in found or ()]
    yield site.finding(
        _rule_of(module),
        node,
        f"nothing but annotations needs `{module}`",
        edits=[site.remove_line(node), *edits],
    )


def _annotations(name: str, site: Site) -> list[Edit] | None:
    """Edits that drop the annotations of parameters that a name is all of; None for other uses."""
    edits = []
    for use in _uses(name, site):
        argument = site.index.parent(use)
        if not (isinstance(argument, ast.arg) and argument.annotation is use):
            return None
        edits.append(site.replace(argument, argument.arg))
    return edits
