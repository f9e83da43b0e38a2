"""NKI1105: in/out arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from nki_migrate.findings import Finding, Safety
from nki_migrate.lower.in_out import is_in_out
from nki_migrate.rules.rule import Example, Rule, Site

__all__ = ["RULE"]

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


_BAD = """
import neuronxcc.nki as nki
import neuronxcc.nki.typing as nt

@nki.jit
def kernel(cache: nt.mutable_tensor, other: nt.mutable_tensor):
    return cache
"""
_GOOD = """
import nki
import nki.typing as nt

# TODO(nki-migrate NKI1105): tensors that a kernel changes in place have no documented equivalent
@nki.jit
def kernel(cache: nt.tensor, other: nt.mutable_tensor):
    return cache
"""

RULE = Rule(
    id="NKI1105",
    step=("0.1", "0.2"),
    klass="b",
    safety=Safety.MANUAL,
    title="in/out arguments are written and returned",
    page="""\
Old: `def kernel(cache: nt.mutable_tensor)`, `cache: nt.tensor[nt.mutable]`

New: `cache: nt.tensor`; the kernel writes to it and returns it

`nki.typing` documents no mark for such tensors, and kernels of the NKI Library (the caches of
`attention_block_tkg`) have none: a parameter that is written and returned. That is what is left
when every `return` of the kernel has the parameter and nothing binds its name anew; otherwise a
TODO.
""",
    examples=(Example.of(_BAD, _GOOD),),
    nodes=(ast.FunctionDef, ast.Attribute, ast.Name),
    check=_check,
)
