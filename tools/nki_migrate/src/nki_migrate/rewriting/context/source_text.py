"""Source text with what has to be spelled anew put in, and values read as numbers."""

from __future__ import annotations

import ast
import re

from nki_migrate.facts.dtypes import BOOL, NUMPY_NAMES, DType
from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import (
    Const,
    Parameter,
    Ref,
    Sym,
    Unknown,
    Value,
)
from nki_migrate.index import children
from nki_migrate.rewriting.context.context import Context

_PATH = re.compile(r"[A-Za-z_]\w*(\.\w+)*")  # `N`, `config.width`


def text_of(ctx: Context, node: ast.AST) -> str:
    """The node's source text with all noted rewrites put in."""
    source = ctx.index.source
    base = source.offset(*source.span(node)[:2])
    pieces, position = [], base
    for start, end, text in sorted(_rewrites_in(ctx, node)):
        if start < position:
            continue
        pieces += [source.text[position:start], text]
        position = end
    end = source.offset(*source.span(node)[2:])
    text = "".join([*pieces, source.text[position:end]])
    return f"({text})" if isinstance(node, ast.NamedExpr) else text


def _rewrites_in(ctx: Context, node: ast.AST) -> list[tuple[int, int, str]]:
    source, found = ctx.index.source, []
    queue: list[ast.AST] = [node]
    while queue:
        n = queue.pop()
        if n in ctx.rewrites:
            line, column, end_line, end_column = source.span(n)
            where = source.offset(line, column), source.offset(end_line, end_column)
            found.append((*where, ctx.rewrites[n]))
        else:
            queue += children(n)
    return found


def as_number(ctx: Context, value: Value) -> Sym | None:
    """The value as a compile-time number, if it can be one."""
    if isinstance(value, Sym):
        return value
    if isinstance(value, Parameter):
        names, atom = frozenset({(value.name, value.version)}), f"{value.name}@{value.version}"
        is_float = ctx.kinds.get(atom) is float
        return Sym(Poly.atom(atom), value.name, is_float=is_float, names=names)
    if isinstance(value, Unknown) and _PATH.fullmatch(value.text):
        return Sym(Poly.atom(value.text), value.text)
    if isinstance(value, Const) and isinstance(value.value, float):
        return Sym(Poly.atom(f"float {value.text}"), value.text, is_float=True)
    return None


def as_dtype(ctx: Context, node: ast.expr | None) -> DType | None:
    """A dtype argument; None if it was not given. Raises Cannot for anything else."""
    if node is None or (isinstance(node, ast.Constant) and node.value is None):
        return None
    if isinstance(node, ast.Name) and node.id == "bool" and node.id not in ctx.scope.values:
        ctx.rewrites[node] = f"{ctx.alias('nl')}.{BOOL}"
        return DType(ctx.rewrites[node], BOOL)
    value = ctx.value_of(node)
    text = text_of(ctx, node)
    if isinstance(value, Ref):
        module, _, name = value.name.partition(".")
        return DType(text, NUMPY_NAMES.get(name, name) if module == "np" else name)
    known = value.value if isinstance(value, Const) else None
    if isinstance(known, DType):
        return known
    if not isinstance(known, str):
        return ctx.dtype(text)
    ctx.rewrites[node] = f"{ctx.alias('nl')}.{known}"
    return DType(ctx.rewrites[node], known)


def default_of(arguments: ast.arguments, name: str) -> ast.expr | None:
    """The default of a parameter."""
    places = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(reversed(places), reversed(arguments.defaults), strict=False),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return next((d for a, d in pairs if a.arg == name), None)
