"""The namespace `nki` in place of `neuronxcc.nki`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain

from neuroncore.findings import Edit, Finding, Severity
from nki_migrate.index import walk
from nki_migrate.rules.rule import Hooks
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
        return site.manual("NKI1108", node, said)
    return site.manual(
        "NKI1107",
        node,
        f"`{path}` has no counterpart under `nki`; the NKI Library may hold a replacement",
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
        what = ", ".join(map(site.source, node.names))
        edit = site.replace(node, f"from nki.isa import {what}")
        yield site.finding("NKI1108", node, "enumerations are in `nki.isa`", edits=[edit])
        return
    annotated = [_annotations(name, site) for name in names]
    if "*" in names or None in annotated or not any(annotated):
        yield left(node, site, module)
        return
    edits = chain.from_iterable(filter(None, annotated))
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


# Names of nl and nisa without a successor (migration rules, NKI1103)
_REMOVED = {
    "par_dim", "mgrid", "arange", "spmd_dim", "nc", "loop_reduce", "all_reduce", "atomic_rmw",
    "finfo", "static_cast", "fp32", "bfp16",
}  # fmt: skip
_PUBLIC = ("neuronxcc.nki", "neuronxcc.nki.language", "neuronxcc.nki.isa", "neuronxcc.nki.typing")


_RULES = {"neuronxcc.nki": "NKI1101", "neuronxcc.nki.typing": "NKI1104"}


def _is_private(path: str) -> bool:
    """Private kernels and the compiler: nothing under the new namespace answers to them."""
    return path.startswith("neuronxcc.") and path not in _PUBLIC


def _new(path: str) -> str:
    return path.removeprefix("neuronxcc.")


def _check(node: ast.Import | ast.ImportFrom, site: Site) -> Iterator[Finding]:
    """NKI1101: NKI1101–NKI1104, NKI1107: imports of the old namespace."""
    if isinstance(node, ast.Import):
        yield from _check_import(node, site)
    elif node.module and (node.module == "neuronxcc" or node.module.startswith("neuronxcc.")):
        yield from _check_from(node, site)


def _check_import(node: ast.Import, site: Site) -> Iterator[Finding]:
    old = [a for a in node.names if a.name.startswith("neuronxcc")]
    if not old:
        return
    private = [a for a in old if a.name == "neuronxcc" or _is_private(a.name)]
    if private:
        yield from check_private_import(node, private[0], site)
        return
    texts = [_import_text(a) if a in old else site.source(a) for a in node.names]
    kept = [t for a, t in zip(node.names, texts, strict=True) if not _is_dead(a, site)]
    edit = site.replace(node, "import " + ", ".join(kept)) if kept else site.remove_line(node)
    rule = _RULES.get(old[0].name, "NKI1102")
    yield site.finding(rule, node, "the namespace is `nki`", edits=[edit])


def _import_text(alias: ast.alias) -> str:
    new = _new(alias.name)
    return new if alias.asname in {None, new} else f"{new} as {alias.asname}"


def _is_dead(alias: ast.alias, site: Site) -> bool:
    """`nki.typing` came with 0.3; before that, and unused, its import goes."""
    if alias.name != "neuronxcc.nki.typing":
        return False
    return not _is_used(alias.asname or "neuronxcc", site)


def _is_used(name: str, site: Site) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in site.index.nodes)


def _check_from(node: ast.ImportFrom, site: Site) -> Iterator[Finding]:
    module = node.module or ""
    if module != "neuronxcc" and _is_private(module):
        yield from check_private_names(node, module, site)
        return
    if module == "neuronxcc":
        yield from _check_top(node, site)
        return
    kept = [a for a in node.names if _is_kept(a, module, site)]
    names, new = ", ".join(site.source(a) for a in kept), _new(module)
    edit = site.replace(node, f"from {new} import {names}") if kept else site.remove_line(node)
    rule = _RULES.get(module, "NKI1103")
    yield site.finding(rule, node, f"names come from `{new}`", edits=[edit])


def _is_kept(alias: ast.alias, module: str, site: Site) -> bool:
    """Whether the new module has the name, and the file needs it."""
    if alias.name in _REMOVED:
        return False
    if module.endswith(".typing"):
        return _is_used(alias.asname or alias.name, site)
    is_harness = module == "neuronxcc.nki" and alias.name in _HARNESS
    return not is_harness or _is_needed(alias, site)


def _is_needed(alias: ast.alias, site: Site) -> bool:
    """Whether a decorator by that name stays: nothing says how the file would write `nki.jit`."""
    if site.index.alias_for("nki") is not None:
        return False
    decorators = [d for n in site.index.nodes for d in getattr(n, "decorator_list", ())]
    used = {n.id for d in decorators for n in walk(d) if isinstance(n, ast.Name)}
    return (alias.asname or alias.name) in used


def _check_top(node: ast.ImportFrom, site: Site) -> Iterator[Finding]:
    """`from neuronxcc import nki`."""
    if [a.name for a in node.names] != ["nki"]:
        yield left(node, site, "neuronxcc")
        return
    alias = node.names[0].asname
    text = "import nki" if alias in {None, "nki"} else f"import nki as {alias}"
    yield site.finding("NKI1101", node, "the namespace is `nki`", edits=[site.replace(node, text)])


def _check_missing(tree: ast.Module, site: Site) -> Iterator[Finding]:
    """RewrittenFunction kernels use `nisa` (or `nl`) even where the file did not import it."""
    for name, module in (("nisa", "nki.isa"), ("nl", "nki.language")):
        if site.index.alias_for(name) is not None or not _unbound(name, site):
            continue
        anchor = _last_nki_import(site)
        if anchor is None:
            continue
        line, _column, _, _ = site.index.source.span(anchor)
        pad = site.index.source.indentation(line)
        text = f"import {module} as {name}{site.index.source.newline}{pad}"
        yield site.finding(
            "NKI1102",
            anchor,
            f"the kernels here use `{name}` now",
            severity=Severity.NOTE,
            edits=[site.insert_before(anchor, text)],
        )


def _unbound(name: str, site: Site) -> bool:
    nodes = [n for n in site.index.nodes if isinstance(n, ast.Name) and n.id == name]
    return bool(nodes) and all(isinstance(n.ctx, ast.Load) for n in nodes)


def _last_nki_import(site: Site) -> ast.stmt | None:
    """The import that the new one goes in front of: that of `nki.language`, else any of nki."""
    body = [s for s in site.index.source.tree.body if isinstance(s, ast.Import | ast.ImportFrom)]
    ours = [s for s in body if "nki" in site.source(s)]
    language = [s for s in ours if "language" in site.source(s)]
    return (language or ours or [None])[0]


# What only the old package has: a module that imports it cannot be imported.
_HARNESS = {"baremetal", "benchmark", "profile", "simulate_kernel", "trace"}


def _check_old_namespace(node: ast.Attribute | ast.Name, site: Site) -> Iterator[Finding]:
    """NKI3002: `neuronxcc.nki` inside a kernel is a compile error from 0.4 on."""
    path = site.index.path(node) or ""
    if not path.startswith("neuronxcc.") or isinstance(site.index.parent(node), ast.Attribute):
        return
    if site.function_of(node) is not None:
        said = f"`{path}` in a kernel is a compile error: migrate it with --from 0.1"
        yield site.manual("NKI3002", node, said)


def _check_logging(node: ast.Attribute, site: Site) -> Iterator[Finding]:
    """NKI1108: `logging.OFF`, which importing `neuronxcc` defines and Python does not."""
    if site.index.path(node) == "logging.OFF":
        said = "`logging.OFF` is the compiler's own: Python's `logging.CRITICAL` disables as much"
        edits = [site.replace(node, f"{site.source(node.value)}.CRITICAL")]
        yield site.finding("NKI1108", node, said, edits=edits)


HOOKS = {
    "NKI1108": Hooks(nodes=(ast.Attribute,), check=_check_logging),
    "NKI1101": Hooks(nodes=(ast.Import, ast.ImportFrom), check=_check),
    "NKI1102": Hooks(nodes=(ast.Module,), check=_check_missing),
    "NKI3002": Hooks(nodes=(ast.Attribute, ast.Name), check=_check_old_namespace),
}
