"""NKI1256: Python that the kernel compiler does not read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety, Severity
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULE"]

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


_BAD = """
import neuronxcc.nki as nki

@nki.jit
def kernel(x):
    width = max(n for n in x.shape)
    return x
"""
_GOOD = _BAD.replace("import neuronxcc.nki as nki", "import nki")

RULE = Rule(
    id="NKI1256",
    step=("0.1", "0.2"),
    klass="c",
    safety=Safety.MANUAL,
    title="Python that the kernel compiler does not read",
    page="""\
Old: `try`, `with`, `lambda`, sets, generator expressions, dicts with other keys than strings,
`f(*values)`

New: plain statements; by hand

From 0.2 on a compiler reads the kernel's text, where Python ran it before. Its values are None,
truths, 32-bit numbers, strings, tensors, tuples, lists, dicts with string keys, and objects of
classes that derive from `nl.NKIObject` (NKI1257). An interpreter may run more than the compiler:
`nki-run --check subset` says what it would refuse.
""",
    examples=(Example.of(_BAD, _GOOD),),
    nodes=(*_FORMS, ast.With, ast.Dict, ast.Call),
    check=_check,
)
