"""Python that the kernel compiler does not read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from neuroncore.findings import Edit, Finding
from nki_migrate.index import walk
from nki_migrate.rules.arguments import has_unknown_arguments
from nki_migrate.rules.rule import Hooks
from nki_migrate.rules.site import Site

_FORMS: dict[type[ast.AST], str] = {
    ast.Try: "`try`", ast.Lambda: "`lambda`", ast.Set: "a set", ast.SetComp: "a set",
    ast.GeneratorExp: "a generator expression",
}  # fmt: skip


def _check(node: ast.AST, site: Site) -> Iterator[Finding]:
    """NKI1256: Python that the kernel compiler does not read."""
    form = _form(node, site)
    if form is not None and _in_body(node, site):
        said = f"the kernel compiler does not read {form}: restructure it"
        yield site.warn("NKI1256", node, said)


def _form(node: ast.AST, site: Site) -> str | None:
    """The construct that the compiler does not read, if the node is one."""
    match node:
        case ast.With(items=items):
            return None if all(_is_language(i.context_expr, site) for i in items) else "`with`"
        case ast.Dict(keys=keys):
            literals = [k.value for k in keys if isinstance(k, ast.Constant)]
            is_plain = all(isinstance(v, str) for v in literals)
            return None if is_plain else "keys other than strings"
        case ast.Call():
            return "`*` arguments" if has_unknown_arguments(node) else None
    return _FORMS.get(type(node))


def _is_language(node: ast.expr, site: Site) -> bool:
    """`nl.no_reorder()`, or something of 0.1 that a rule of its own speaks of."""
    name = site.canonical(node.func) if isinstance(node, ast.Call) else None
    return name is not None and name.partition(".")[0] in {"nl", "nki", "ncc"}


def _in_body(node: ast.AST, site: Site) -> bool:
    """In the body of kernel code: decorators and defaults belong to the host."""
    function = site.function_of(node)
    chain = [node, *site.index.ancestors(node)]
    return function is not None and any(statement in chain for statement in function.node.body)


_ENUMS = {"Enum", "IntEnum", "enum.Enum", "enum.IntEnum"}
_DATACLASS = {"dataclass", "dataclasses.dataclass"}


def _check_classes(node: ast.ClassDef, site: Site) -> Iterator[Finding]:
    """NKI1257: classes of kernel code derive from `nl.NKIObject`."""
    bases = {site.canonical(b) or site.source(b) for b in node.bases}
    if bases & (_ENUMS | {"nl.NKIObject"}) or not _is_used_in_kernels(node, site):
        return
    said = f"class `{node.name}` is used in a kernel: it derives from `nl.NKIObject`"
    language = site.index.alias_for("nl")
    if language is None or not _is_plain(node, site) or not _comes_after(node, language, site):
        said += "; its constructor takes the fields, nothing else is read"
        yield site.warn("NKI1257", node, said)
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


def _check_globals(node: ast.FunctionDef, site: Site) -> Iterator[Finding]:
    """NKI1258: globals that change."""
    function = site.function_of(node)
    if function is None or function.node is not node:
        return
    changing = site.index.changing
    names = [n for s in node.body for n in walk(s) if isinstance(n, ast.Name)]
    own = {n.id for n in names if not isinstance(n.ctx, ast.Load)} | set(function.parameters)
    read = {n.id for n in names} - own
    for name in sorted(read & changing):
        said = f"`{name}` changes, and results are cached by arguments: pass it as one"
        yield site.warn("NKI1258", node, said)


_OPERATOR = re.compile(r"\bis\s+not\b|\bis\b")


def _check_identity(node: ast.Compare, site: Site) -> Iterator[Finding]:
    """NKI2015: `is None` and its kind: kernel code compares with `==`."""
    if site.function_of(node) is None:
        return
    sides = [node.left, *node.comparators]
    edits = [
        _operator(sides[i], sides[i + 1], site)
        for i, operator in enumerate(node.ops)
        if isinstance(operator, ast.Is | ast.IsNot) and _is_singleton(sides[i], sides[i + 1])
    ]
    if edits:
        yield site.finding(
            "NKI2015", node, "kernel code has no `is`; compare with == or !=", edits=edits
        )


def _is_singleton(*sides: ast.expr) -> bool:
    return any(
        isinstance(side, ast.Constant) and (side.value is None or isinstance(side.value, bool))
        for side in sides
    )


def _operator(left: ast.expr, right: ast.expr, site: Site) -> Edit:
    """Replace the words between two operands, keeping the space (and parentheses) around them."""
    source = site.index.source
    _, _, line, column = source.span(left)
    end_line, end_column, _, _ = source.span(right)
    between = source.text[source.offset(line, column) : source.offset(end_line, end_column)]
    replaced = _OPERATOR.sub(lambda m: "!=" if "not" in m[0] else "==", between, count=1)
    return Edit(line, column, end_line, end_column, replaced)


HOOKS = {
    "NKI1256": Hooks(nodes=(*_FORMS, ast.With, ast.Dict, ast.Call), check=_check),
    "NKI1257": Hooks(nodes=(ast.ClassDef,), check=_check_classes),
    "NKI1258": Hooks(nodes=(ast.FunctionDef,), check=_check_globals),
    "NKI2015": Hooks(nodes=(ast.Compare,), check=_check_identity),
}
