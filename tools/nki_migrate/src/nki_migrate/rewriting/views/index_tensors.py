"""Index tensors: arithmetic, comparisons, and the masks that these make.

A rectangular mask is a count of elements per axis; a predicate on numbers is an `if` around the
instruction; other masks are not supported.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import (
    Bound,
    Const,
    Index,
    Mask,
    Sym,
    Value,
)
from nki_migrate.index import walk
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason, Unsupported
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
            return replace(_scaled(index, Sym.number(-1)), offset=number - index.offset)
        case ast.Mult():
            return replace(_scaled(index, number), offset=index.offset * number)
    return None


def _scaled(index: Index, factor: Sym) -> Index:
    """The terms times a number."""
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
    negative = replace(_scaled(b, Sym.number(-1)), offset=Sym.number(0))
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


_MIRROR: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
_ONE = Sym.number(1)


@dataclass(frozen=True, slots=True)
class Region:
    """Where an instruction works: element counts of some of `rank` axes, and conditions around."""

    limits: Mapping[int, Sym] = field(default_factory=dict)
    guards: Sequence[str] = ()
    rank: int = 2

    @property
    def is_everywhere(self) -> bool:
        """Whether nothing restricts it."""
        return not self.limits and not self.guards

    @property
    def rows(self) -> dict[int, Sym]:
        """The limit of the partition axis."""
        return {axis: size for axis, size in self.limits.items() if axis == 0}


EVERYWHERE = Region()


def conjoin(a: Value, b: Value) -> Value:
    """mask & mask."""
    if not (isinstance(a, Mask) and isinstance(b, Mask)):
        return Unsupported("a mask built from something else than comparisons", Reason.OTHER_MASK)
    return Mask(a.bounds + b.bounds, a.predicates + b.predicates, a.opaque or b.opaque)


def compare(left: Value, operator: ast.cmpop, right: Value, text: str) -> Value:
    """A comparison of index tensors and numbers as a mask."""
    if isinstance(left, Sym) and isinstance(right, Sym):
        return Mask(predicates=(text,))
    if isinstance(right, Index) and isinstance(left, Sym):
        mirrored = _MIRROR.get(type(operator))
        if mirrored is None:
            return Mask(opaque=f"`{text}` compares for equality")
        return compare(right, mirrored(), left, text)
    if isinstance(left, Index) and isinstance(right, Index):
        return Mask(opaque=f"`{text}` is not a rectangle: it compares two index tensors")
    if not (isinstance(left, Index) and isinstance(right, Sym)):
        return Unsupported(
            f"`{text}` is not a comparison of an index tensor with a number", Reason.OTHER_MASK
        )
    return _bound(left, operator, right, text)


def _bound(index: Index, operator: ast.cmpop, limit: Sym, text: str) -> Mask:
    if len(index.terms) != 1:
        return Mask(opaque=f"`{text}` bounds a sum of index tensors")
    axis, coefficient = index.terms[0]
    mirrored = _MIRROR.get(type(operator))
    if coefficient.value is not None and coefficient.value < 0 and mirrored is not None:
        minus = Sym.number(-1)
        index = replace(_scaled(index, minus), offset=minus * index.offset)
        return _bound(index, mirrored(), minus * limit, text)
    if isinstance(operator, ast.LtE):
        operator, limit = ast.Lt(), limit + _ONE
    if not isinstance(operator, ast.Lt):
        return Mask(opaque=f"`{text}` is not an upper bound")
    from_end = axis - len(index.extents)
    return Mask((Bound(from_end, coefficient, index.offset, limit, index.extents[axis]),))


def region_of(
    ctx: Context,
    mask: Mask,
    shape: tuple[Sym, ...],
    node: ast.AST,
    same: Callable[[Poly, Poly], bool],
) -> Region:
    """The element counts that a mask leaves of an access of that shape.

    Bounds that hold anyway vanish. `same`: whether the access has the extents of the mask's
    index tensors, as 0.1 requires. A count that may be zero or less guards the
    instruction.
    """
    if mask.opaque:
        raise Cannot(Reason.OTHER_MASK, f"mask {mask.opaque}; no slice says the same", node)
    limits: dict[int, Sym] = {}
    guards = list(mask.predicates)
    if guards:
        ctx.report(Reason.PREDICATE_MASK, node, "a predicate on numbers is an `if`")
    for bound in mask.bounds:
        axis = len(shape) + bound.axis
        if axis < 0 or not same(shape[axis].poly, bound.extent.poly):
            raise Cannot(
                Reason.OTHER_MASK, "the mask's index tensor is not one of this access", node
            )
        count = _count(ctx, bound)
        if ctx.facts.proves_at_least((count - bound.extent).poly, 0):
            ctx.report(
                Reason.REDUNDANT_MASK, node, f"this bound always holds: `{bound.limit.text}`"
            )
            continue
        ctx.report(Reason.RECTANGULAR_MASK, node, "a rectangular mask is a shorter slice")
        name, sure = _named_count(ctx, bound, count, axis)
        if axis in limits and limits[axis].poly != name.poly:
            both = ctx.fresh_name("tile_size")
            ctx.emit(f"{both} = min({limits[axis].text}, {name.text})")
            name = _bind_count(ctx, both)
        limits[axis] = name
        if not sure:
            ctx.maybe_empty.add(name.text)
            guards += guards_of(ctx, [name])
    return Region(limits, guards, len(shape))


def guards_of(ctx: Context, counts: Iterable[Sym]) -> list[str]:
    """The conditions under which an instruction on so many elements has any."""
    return [f"{n.text} > 0" for n in counts if n.text in ctx.maybe_empty]


def _count(ctx: Context, bound: Bound) -> Sym:
    """How many values of the axis satisfy the bound, before clamping to the extent."""
    room = bound.limit - bound.offset
    c = bound.coefficient.value
    if c is None or c < 1:
        raise Cannot(Reason.OTHER_MASK, "a mask over an index tensor scaled by no positive literal")
    if c == 1:
        return room
    poly = ctx.facts.quotient((room + Sym.number(c - 1)).poly, bound.coefficient.poly)
    return Sym(poly, f"({(room + Sym.number(c - 1)).text}) // {c}", 2, names=room.names)


def _named_count(ctx: Context, bound: Bound, count: Sym, axis: int) -> tuple[Sym, bool]:
    """A variable `tile_rows = min(128, rows - i * 128)`, made once per block."""
    key = (count.poly, bound.extent.poly)
    sure = ctx.facts.proves_at_least(count.poly, 1)
    for made in reversed(ctx.counts):
        if key in made:
            return made[key], sure
    word = bound.limit.text if bound.limit.text.isidentifier() else "pf"[min(axis, 1)]
    name = ctx.fresh_name(f"tile_{word}")
    ctx.emit(f"{name} = min({ctx.spell(bound.extent)}, {ctx.spell(count)})")
    sym = _bind_count(ctx, name)
    ctx.counts[-1][key] = sym
    return sym, sure


def _bind_count(ctx: Context, name: str) -> Sym:
    ctx.scope.bind(name, Const(None, name))
    sym = ctx.named(name, Poly.atom(ctx.atom(name)))
    ctx.scope.values[name] = sym
    return sym
