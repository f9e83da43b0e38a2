"""Index tensors: arithmetic and comparisons."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Dim, Index, Sym, Value
from nki_migrate.index import walk
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Reason, Unsupported
from nki_migrate.rewriting.context.source_text import as_number, text_of

_LEVELS: dict[type[ast.operator], int] = {
    ast.Add: 1,
    ast.Sub: 1,
    ast.Mult: 2,
    ast.FloorDiv: 2,
    ast.Mod: 2,
    ast.Div: 2,
}


def number_arithmetic(ctx: Context, node: ast.BinOp, a: Sym, b: Sym) -> Sym:
    """A number calculated at compile time, in the words of the source."""
    text, level = text_of(ctx, node), _LEVELS.get(type(node.op), 0)
    is_float = a.is_float or b.is_float or isinstance(node.op, ast.Div)
    if is_float:
        poly = Poly.atom(f"float {a.poly}{type(node.op).__name__}{b.poly}")
    else:
        poly = _calculated(ctx, node.op, a, b)
        if poly.constant is not None and "\n" in text:
            return Sym.number(poly.constant)
    return Sym(poly, " ".join(text.split()), level, is_float, a.names | b.names)


def _calculated(ctx: Context, op: ast.operator, a: Sym, b: Sym) -> Poly:
    match op:
        case ast.Add():
            return a.poly + b.poly
        case ast.Sub():
            return a.poly - b.poly
        case ast.Mult():
            return a.poly * b.poly
        case ast.FloorDiv():
            return ctx.facts.quotient(a.poly, b.poly)
        case ast.Mod() if b.value and ctx.facts.divides(b.value, a.poly):
            return Poly.number(0)
    known = None if a.value is None or b.value is None else _known(op, a.value, b.value)
    unknown = f"({a.poly}){type(op).__name__}({b.poly})"
    return Poly.atom(unknown) if known is None else Poly.number(known)


def _known(op: ast.operator, a: int, b: int) -> int | None:
    """`a % b` or `a ** b`, where it is an integer of usual size."""
    if isinstance(op, ast.Mod) and b:
        return a % b
    return a**b if isinstance(op, ast.Pow) and 0 <= b < 32 else None


def index_arithmetic(ctx: Context, node: ast.BinOp, left: Value, right: Value) -> Value:
    """An operation of index tensors and numbers; Unsupported if that is not affine."""
    text = ctx.index.source.segment(node)
    if isinstance(node.op, ast.FloorDiv | ast.Mod):
        return Unsupported(f"`{text}` divides an index tensor", Reason.REPEATED_AXIS)
    of_two = _OF_TWO.get(type(node.op))
    if isinstance(left, Index) and isinstance(right, Index) and of_two is not None:
        return of_two(ctx, left, right, text)
    index, other = (left, right) if isinstance(left, Index) else (right, left)
    number = as_number(ctx, other)
    result = None
    if isinstance(index, Index) and number is not None:
        result = _with_number(node.op, index, number, index is left)
    text = f"`{text}` is not affine in the index tensor"
    return result or Unsupported(text, Reason.INDEX_TENSOR)


def _with_number(op: ast.operator, index: Index, number: Sym, is_left: bool) -> Index | None:
    """`index op number`, or `number op index`; None if that is not affine."""
    match op:
        case ast.Add():
            offset = index.offset + number if is_left else number + index.offset
            return replace(index, offset=offset)
        case ast.Sub() if is_left:
            return replace(index, offset=index.offset - number)
        case ast.Sub():
            return replace(scaled(index, Sym.number(-1)), offset=number - index.offset)
        case ast.Mult():
            return replace(scaled(index, number), offset=index.offset * number)
    return None


def scaled(index: Index, factor: Sym) -> Index:
    """The terms times a number; times zero there are none."""
    if factor.value == 0:
        return replace(index, terms=())
    return replace(index, terms=tuple((a, c * factor) for a, c in index.terms))


def one_of_indices(ctx: Context, node: ast.IfExp, a: Value, b: Value) -> Value:
    """`i if split else 2 * i`: one index tensor whose offset and factors are conditional."""
    if not isinstance(a, Index) or not isinstance(b, Index) or not _are_alike(ctx, a, b):
        text = f"`{ctx.index.source.segment(node)}` is one of several index tensors"
        return Unsupported(text, Reason.INDEX_TENSOR)
    pairs = zip(a.terms, b.terms, strict=True)
    terms = tuple((axis, _chosen(ctx, node, x, y)) for (axis, x), (_, y) in pairs)
    return replace(a, terms=terms, offset=_chosen(ctx, node, a.offset, b.offset))


def _are_alike(ctx: Context, a: Index, b: Index) -> bool:
    """Whether two index tensors have the same extents and vary along the same axes."""
    if [axis for axis, _ in a.terms] != [axis for axis, _ in b.terms]:
        return False
    sizes = zip(a.extents, b.extents, strict=False)
    return len(a.extents) == len(b.extents) and all(
        ctx.facts.same(x.poly, y.poly) for x, y in sizes
    )


def _chosen(ctx: Context, node: ast.IfExp, a: Sym, b: Sym) -> Sym:
    """One of two numbers, by the test of a conditional expression."""
    if ctx.facts.same(a.poly, b.poly):
        return a
    text = f"({a.text} if {text_of(ctx, node.test)} else {b.text})"
    read = {n.id for n in walk(node.test) if isinstance(n, ast.Name)}
    names = frozenset((n, ctx.scope.versions[n]) for n in read if n in ctx.scope.versions)
    return Sym(Poly.atom(text), text, names=names | a.names | b.names)


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
    negative = replace(scaled(b, Sym.number(-1)), offset=Sym.number(0))
    both = _sum_of_indices(ctx, a, negative, text)
    return replace(both, offset=a.offset - b.offset) if isinstance(both, Index) else both


def _as_index(ctx: Context, value: Value, rank: int) -> Index | None:
    if isinstance(value, Index):
        return value
    number = as_number(ctx, value)
    return None if number is None else Index((Sym.number(1),) * rank, (), number)


def shared_extent(ctx: Context, sizes: list[Sym]) -> Sym | None:
    """The extent of one axis of several index tensors; None if they differ and are not 1."""
    large = [e for e in sizes if e.value != 1] or [Sym.number(1)]
    return large[0] if all(ctx.facts.same(e.poly, large[0].poly) for e in large) else None


def _sum_of_indices(ctx: Context, a: Index, b: Index, text: str) -> Value:
    rank = max(len(a.extents), len(b.extents))
    shifts = [(i, rank - len(i.extents)) for i in (a, b)]
    extents = []
    for axis in range(rank):
        sizes = [i.extents[axis - s] for i, s in shifts if axis >= s]
        extent = shared_extent(ctx, sizes)
        if extent is None:
            return Unsupported(
                f"`{text}` adds index tensors of different extents", Reason.INDEX_TENSOR
            )
        extents.append(extent)
    terms: dict[int, Sym] = {}
    for i, shift in shifts:
        for axis, c in i.terms:
            key = axis + shift
            terms[key] = terms[key] + c if key in terms else c
    return Index(tuple(extents), tuple(sorted(terms.items())), a.offset + b.offset)


_OF_TWO: dict[type[ast.operator], Callable[[Context, Index, Index, str], Value]] = {
    ast.Add: _sum_of_indices,
    ast.Sub: _difference,
}


def dim_of(index: Index, rank: int) -> Dim:
    """How an index tensor, broadcast to `rank` axes, addresses its dimension."""
    shift = rank - len(index.extents)
    return Dim(index.offset, tuple((a + shift, c) for a, c in index.terms))


def axis_extent(index: Index, axis: int, rank: int) -> Sym:
    own = axis - (rank - len(index.extents))
    return index.extents[own] if own >= 0 else Sym.number(1)
