"""NKI1101–NKI1104, NKI1107: imports of the old namespace."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.index import walk
from nki_migrate.rules.private_imports import check_private_import, check_private_names, left
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULES"]

# Names of nl and nisa without a successor (migration rules, NKI1103)
_REMOVED = {
    "par_dim", "mgrid", "arange", "spmd_dim", "nc", "loop_reduce", "all_reduce", "atomic_rmw",
    "finfo", "static_cast", "fp32", "bfp16",
}  # fmt: skip
_PUBLIC = ("neuronxcc.nki", "neuronxcc.nki.language", "neuronxcc.nki.isa", "neuronxcc.nki.typing")


def _is_private(path: str) -> bool:
    """Private kernels and the compiler: nothing under the new namespace answers to them."""
    return path.startswith("neuronxcc.") and path not in _PUBLIC


def _new(path: str) -> str:
    return path.removeprefix("neuronxcc.")


def _check(node: ast.Import | ast.ImportFrom, site: Site) -> Iterator[Finding]:
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
    rule = "NKI1101" if old[0].name == "neuronxcc.nki" else "NKI1102"
    rule = "NKI1104" if old[0].name == "neuronxcc.nki.typing" else rule
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
    kept = [a for a in node.names if not _goes(a, module, site)]
    removed_but_used = [a.name for a in kept if a.name in _REMOVED]
    if removed_but_used:
        kept = [a for a in kept if a.name not in _REMOVED]
    if module == "neuronxcc.nki":
        kept = [a for a in kept if a.name not in _HARNESS or _is_needed(a, site)]
    names = ", ".join(site.source(a) for a in kept)
    edit = (
        site.replace(node, f"from {_new(module)} import {names}")
        if kept
        else site.remove_line(node)
    )
    rule = (
        "NKI1104"
        if module.endswith(".typing")
        else "NKI1101"
        if module == "neuronxcc.nki"
        else "NKI1103"
    )
    yield site.finding(rule, node, f"names come from `{_new(module)}`", edits=[edit])


def _goes(alias: ast.alias, module: str, site: Site) -> bool:
    used = _is_used(alias.asname or alias.name, site)
    return not used and (alias.name in _REMOVED or module.endswith(".typing"))


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
    """Lowered kernels use `nisa` (or `nl`) even where the file did not import it."""
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

_BAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
from neuronxcc.nki.isa import get_nc_version

@nki.jit
def kernel(x):
    version = get_nc_version()
    return nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
"""
_GOOD = """
import nki
import nki.language as nl
from nki.isa import get_nc_version

@nki.jit
def kernel(x):
    version = get_nc_version()
    return nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
"""
_STEP = ("0.1", "0.2")

RULES = (
    Rule(
        id="NKI1101",
        step=_STEP,
        klass="a",
        safety=Safety.SAFE,
        title="`neuronxcc.nki` is `nki`",
        page="""\
Old: `import neuronxcc.nki as nki`, `from neuronxcc import nki`

New: `import nki`; another alias is kept; `benchmark` and other names that are gone are not
imported, so that the kernels of the file can be: NKI1116 speaks up where they are used

From 0.4 on the old namespace inside a kernel is a compile error.
""",
        examples=(Example.of(_BAD, _GOOD),),
        nodes=(ast.Import, ast.ImportFrom),
        check=_check,
    ),
    Rule(
        id="NKI1102",
        step=_STEP,
        klass="a",
        safety=Safety.SAFE,
        title="`neuronxcc.nki.language` and `neuronxcc.nki.isa` are `nki.language` and `nki.isa`",
        page="""\
Old: `import neuronxcc.nki.language as nl`

New: `import nki.language as nl`

Where the migrated kernels call `nisa` and the file did not import it, the import is added.
""",
        nodes=(ast.Module,),
        check=_check_missing,
    ),
    Rule(
        id="NKI1103",
        step=_STEP,
        klass="a",
        safety=Safety.SAFE,
        title="names imported from the old modules come from the new ones",
        page="""\
Old: `from neuronxcc.nki.language import par_dim, affine_range`

New: `from nki.language import affine_range`

Names without a successor are dropped; where they are used their own rule speaks up.
""",
    ),
    Rule(
        id="NKI1104",
        step=_STEP,
        klass="a",
        safety=Safety.SAFE,
        title="`nki.typing` annotations of local tiles go",
        page="""\
Old: `tile: tensor[128, 512] = nl.load(x)`

New: the assignment without the annotation; annotations of parameters stay

0.2 has no `nki.typing`; from 0.3 on it serves parameters.
""",
    ),
    Rule(
        id="NKI1107",
        step=_STEP,
        klass="c",
        safety=Safety.MANUAL,
        title="private kernels and compiler modules have no counterpart",
        page="""\
Old: `from neuronxcc.nki._private_kernels.mlp import …`, `import neuronxcc.nki.compiler as ncc`

New: the NKI Library, or nothing

Reported at the import; the kernels that use the names stay as they are. An import that nothing
needs any more goes: of `nki.compiler` for decorators (NKI1114) or addresses (NKI1143), of a type
that only annotates. The enumerations of `neuronxcc.nki.isa.constants` are in `nki.isa`.
""",
    ),
)
