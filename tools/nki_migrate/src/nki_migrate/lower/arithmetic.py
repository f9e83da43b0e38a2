"""Arithmetic on compile-time numbers and index tensors (rules NKI1150–NKI1156)."""

from __future__ import annotations

import ast

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import (
    Index,
    Sym,
    Unknown,
    Value,
)
from nki_migrate.lower.context import Context
from nki_migrate.lower.source_text import as_number, text_of

__all__ = ["index_arithmetic", "number_arithmetic", "relation_of"]


_LEVELS: dict[type[ast.operator], int] = {
    ast.Add: 1,
    ast.Sub: 1,
    ast.Mult: 2,
    ast.FloorDiv: 2,
    ast.Mod: 2,
    ast.Div: 2,
}


def number_arithmetic(ctx: Context, node: ast.BinOp, a: Sym, b: Sym) -> Value:
    text, level = text_of(ctx, node), _LEVELS.get(type(node.op), 0)
    names = a.names | b.names

    def made(poly: Poly, *, is_float: bool = False) -> Sym:
        if poly.constant is not None and not is_float and "\n" in text:
            return Sym.number(poly.constant)
        return Sym(poly, " ".join(text.split()), level, is_float, names)

    if a.is_float or b.is_float or isinstance(node.op, ast.Div):
        return made(Poly.atom(f"float {a.poly}{type(node.op).__name__}{b.poly}"), is_float=True)
    match node.op:
        case ast.Add():
            return made(a.poly + b.poly)
        case ast.Sub():
            return made(a.poly - b.poly)
        case ast.Mult():
            return made(a.poly * b.poly)
        case ast.FloorDiv():
            return made(ctx.facts.quotient(a.poly, b.poly))
        case ast.Mod() if b.value and ctx.facts.divides(b.value, a.poly):
            return made(Poly.number(0))
        case ast.Mod() if a.value is not None and b.value:
            return made(Poly.number(a.value % b.value))
        case ast.Pow() if a.value is not None and b.value is not None and 0 <= b.value < 32:
            return made(Poly.number(a.value**b.value))
    return made(Poly.atom(f"({a.poly}){type(node.op).__name__}({b.poly})"))


def index_arithmetic(ctx: Context, node: ast.BinOp, left: Value, right: Value) -> Value:
    text = ctx.index.source.segment(node)
    if isinstance(node.op, ast.FloorDiv | ast.Mod):
        return Unknown(f"`{text}` divides an index tensor", "NKI1156")
    if isinstance(left, Index) and isinstance(right, Index) and isinstance(node.op, ast.Add):
        return _sum_of_indices(ctx, left, right, text)
    if isinstance(left, Index) and isinstance(right, Index) and isinstance(node.op, ast.Sub):
        return _difference(ctx, left, right, text)
    index, other = (left, right) if isinstance(left, Index) else (right, left)
    number = as_number(ctx, other)
    if not isinstance(index, Index) or number is None:
        return Unknown(f"`{text}` is not affine in the index tensor", "NKI1150")
    match node.op:
        case ast.Add():
            offset = number + index.offset if index is right else index.offset + number
            return Index(index.extents, index.terms, offset)
        case ast.Sub() if index is left:
            return Index(index.extents, index.terms, index.offset - number)
        case ast.Sub():
            terms = tuple((a, c * Sym.number(-1)) for a, c in index.terms)
            return Index(index.extents, terms, number - index.offset)
        case ast.Mult():
            terms = tuple((a, c * number) for a, c in index.terms)
            return Index(index.extents, terms, index.offset * number)
    return Unknown(f"`{text}` is not affine in the index tensor", "NKI1150")


def relation_of(
    ctx: Context, left: Value, operator: ast.cmpop, right: Value
) -> tuple[type[ast.cmpop], Index] | None:
    """`left < right` as (less, left - right); None if that is not affine in index tensors."""
    sides = [side for side in (left, right) if isinstance(side, Index)]
    if not sides:
        return None
    one, other = (_as_index(ctx, side, len(sides[0].extents)) for side in (left, right))
    if one is None or other is None:
        return None
    difference = _difference(ctx, one, other, "")
    return (type(operator), difference) if isinstance(difference, Index) else None


def _difference(ctx: Context, a: Index, b: Index, text: str) -> Value:
    """i - j with the extents of both."""
    terms = tuple((axis, c * Sym.number(-1)) for axis, c in b.terms)
    both = _sum_of_indices(ctx, a, Index(b.extents, terms, Sym.number(0)), text)
    if not isinstance(both, Index):
        return both
    return Index(both.extents, both.terms, a.offset - b.offset)


def _as_index(ctx: Context, value: Value, rank: int) -> Index | None:
    if isinstance(value, Index):
        return value
    number = as_number(ctx, value)
    return None if number is None else Index((Sym.number(1),) * rank, (), number)


def _sum_of_indices(ctx: Context, a: Index, b: Index, text: str) -> Value:
    rank = max(len(a.extents), len(b.extents))
    shifts = [(i, rank - len(i.extents)) for i in (a, b)]
    extents = []
    for axis in range(rank):
        sizes = [i.extents[axis - s] for i, s in shifts if axis >= s]
        large = [e for e in sizes if e.value != 1] or [Sym.number(1)]
        if not all(ctx.facts.same(e.poly, large[0].poly) for e in large):
            return Unknown(f"`{text}` adds index tensors of different extents", "NKI1150")
        extents.append(large[0])
    terms: dict[int, Sym] = {}
    for i, shift in shifts:
        for axis, c in i.terms:
            key = axis + shift
            terms[key] = terms[key] + c if key in terms else c
    return Index(tuple(extents), tuple(sorted(terms.items())), a.offset + b.offset)
