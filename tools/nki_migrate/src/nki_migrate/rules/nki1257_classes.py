"""NKI1257: classes of kernel code derive from `nl.NKIObject`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding, Safety, Severity
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_ENUMS = {"Enum", "IntEnum", "enum.Enum", "enum.IntEnum"}
_DATACLASS = {"dataclass", "dataclasses.dataclass"}


def _check(node: ast.ClassDef, site: Site) -> Iterator[Finding]:
    bases = {site.canonical(b) or site.source(b) for b in node.bases}
    if bases & (_ENUMS | {"nl.NKIObject"}) or not _is_used_in_kernels(node, site):
        return
    said = f"class `{node.name}` is used in a kernel: it derives from `nl.NKIObject`"
    language = site.index.alias_for("nl")
    if language is None or not _is_plain(node, site) or not _comes_after(node, language, site):
        said += "; its constructor takes the fields, nothing else is read"
        yield site.finding("NKI1257", node, said, severity=Severity.WARNING, safety=Safety.MANUAL)
        return
    yield site.finding("NKI1257", node, said, edits=[_with_base(node, language, site)])


def _is_used_in_kernels(node: ast.ClassDef, site: Site) -> bool:
    return any(
        isinstance(n, ast.Name) and n.id == node.name and site.function_of(n) is not None
        for n in site.index.nodes
    )


def _is_plain(node: ast.ClassDef, site: Site) -> bool:
    """No base, no constructor of its own, no decorator but `dataclass`: fields and methods."""
    decorators = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    return (
        not node.bases
        and not node.keywords
        and all(site.source(d) in _DATACLASS for d in decorators)
        and not any(isinstance(s, ast.FunctionDef) and s.name == "__init__" for s in node.body)
    )


def _comes_after(node: ast.ClassDef, language: str, site: Site) -> bool:
    """Whether `nl` is bound where the class statement runs."""
    bound = [i.statement for i in site.index.imports if i.local == language.partition(".")[0]]
    return any(s.lineno < node.lineno and s in site.index.source.tree.body for s in bound)


def _with_base(node: ast.ClassDef, language: str, site: Site) -> Edit:
    line, text = node.lineno, site.index.source.lines[node.lineno - 1]
    start = text.index(node.name, text.index("class") + len("class")) + len(node.name)
    rest = text[start:]
    empty = rest.lstrip()[:2] == "()"
    end = start + (len(rest) - len(rest.lstrip()) + 2 if empty else 0)
    return Edit(line, start + 1, line, end + 1, f"({language}.NKIObject)")


_BAD = """
from dataclasses import dataclass

import neuronxcc.nki as nki
import neuronxcc.nki.language as nl

@dataclass
class Tiling:
    rows: int = 128

@nki.jit
def kernel(x):
    rows = Tiling().rows
    return x
"""
_GOOD = _BAD.replace("neuronxcc.nki as nki", "nki").replace("neuronxcc.nki", "nki")
_GOOD = _GOOD.replace("class Tiling:", "class Tiling(nl.NKIObject):")


HOOKS = Hooks(nodes=(ast.ClassDef,), check=_check)
