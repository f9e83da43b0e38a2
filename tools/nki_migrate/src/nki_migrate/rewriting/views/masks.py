"""Masks: conjunctions of affine inequalities of index tensors, and of predicates on numbers.

Bounds of one axis each are a rectangle: a first element and a count per axis. A predicate on
numbers is an `if` around the instruction. Planes relate several axes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nki_migrate.facts.symbols import Poly
from nki_migrate.facts.values import Bound, Const, Index, Mask, Part, Plane, Slice, Sym, Value
from nki_migrate.rewriting.context.context import Context
from nki_migrate.rewriting.context.reasons import Cannot, Reason, Unsupported
from nki_migrate.rewriting.views.index_tensors import relation_of, scaled

_MIRROR: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
_AFTER = (ast.LtE, ast.Gt, ast.Eq)  # what the element at the limit is on the lower side of
_ZERO, _ONE = Sym.number(0), Sym.number(1)


@dataclass(frozen=True, slots=True)
class Region:
    """Where an instruction works: element counts of some of `rank` axes, and conditions around."""

    limits: Mapping[int, Part] = field(default_factory=dict)
    guards: Sequence[str] = ()
    rank: int = 2

    @property
    def is_everywhere(self) -> bool:
        """Whether nothing restricts it."""
        return not self.limits and not self.guards

    @property
    def rows(self) -> dict[int, Part]:
        """The limit of the partition axis."""
        return {axis: size for axis, size in self.limits.items() if axis == 0}

    def of_rows(self, shape: tuple[Sym, ...] | str) -> Region:
        """What is written of a result of this shape that has an element, or a few, of each row."""
        return Region(self.rows, self.guards, self.rank if isinstance(shape, str) else len(shape))


EVERYWHERE = Region()


def conjoin(a: Value, b: Value) -> Value:
    """mask & mask."""
    if not (isinstance(a, Mask) and isinstance(b, Mask)):
        return Unsupported("a mask built from something else than comparisons", Reason.OTHER_MASK)
    return Mask(
        a.bounds + b.bounds,
        a.predicates + b.predicates,
        a.opaque or b.opaque,
        planes=a.planes + b.planes,
    )


def compare(ctx: Context, left: Value, operator: ast.cmpop, right: Value, text: str) -> Value:
    """A comparison of index tensors and numbers as a mask."""
    if isinstance(left, Sym) and isinstance(right, Sym):
        return Mask(predicates=(text,))
    relation = relation_of(ctx, left, operator, right)
    if relation is None:
        return Unsupported(
            f"`{text}` is not a comparison of an index tensor with a number", Reason.OTHER_MASK
        )
    index, limit = relation[1], _ZERO
    if isinstance(left, Index) and isinstance(right, Sym):  # in the words of the source
        index, limit = left, right
    elif isinstance(left, Sym) and isinstance(right, Index):
        index, limit, operator = right, left, _MIRROR.get(type(operator), type(operator))()
    return replace(_bounded(index, operator, limit, text), relation=relation)


def _bounded(index: Index, operator: ast.cmpop, limit: Sym, text: str) -> Mask:
    """`index < limit` and its like: a bound, or the one element of an axis."""
    if len(index.terms) != 1:
        relation = type(operator), replace(index, offset=index.offset - limit)
        return Mask(planes=(Plane(relation, text),))
    axis, coefficient = index.terms[0]
    mirrored = _MIRROR.get(type(operator), type(operator))
    if coefficient.value is not None and coefficient.value < 0:
        minus = Sym.number(-1)
        index = replace(scaled(index, minus), offset=minus * index.offset)
        return _bounded(index, mirrored(), minus * limit, text)
    from_end = axis - len(index.extents)
    below = Bound(from_end, coefficient, index.offset, limit, index.extents[axis])
    after = replace(below, limit=limit + _ONE) if isinstance(operator, _AFTER) else below
    match operator:
        case ast.Lt() | ast.LtE():
            return Mask((after,))
        case ast.Gt() | ast.GtE():
            return Mask((replace(after, is_lower=True),))
        case ast.Eq():
            return Mask((replace(below, is_lower=True), after))
    return Mask(opaque=f"`{text}` leaves one element out")


def unsupported_part(mask: Mask) -> str | None:
    """Why a mask is not a rectangle; None if it is one."""
    if mask.planes:
        return f"`{mask.planes[0].text}` is not a rectangle: it compares two index tensors"
    return mask.opaque


def region_of(
    ctx: Context,
    mask: Mask,
    shape: tuple[Sym, ...],
    node: ast.AST,
    same: Callable[[Poly, Poly], bool],
) -> Region:
    """The elements that a mask leaves of an access of that shape.

    Bounds that hold anyway vanish. `same`: whether the access has the extents of the mask's
    index tensors, as 0.1 requires. A count that may be zero or less guards the
    instruction.
    """
    if why := unsupported_part(mask):
        raise Cannot(Reason.OTHER_MASK, f"mask {why}; no slice says the same", node)
    if mask.predicates:
        ctx.report(Reason.PREDICATE_MASK, node, "a predicate on numbers is an `if`")
    stops, starts = dict[int, Sym](), dict[int, Sym]()
    for axis, bound, count in _restricting(ctx, mask, shape, node, same):
        if bound.is_lower:
            starts[axis] = _later(ctx, starts.get(axis), _named_start(ctx, count, axis))
        else:
            stops[axis] = _earlier(ctx, stops.get(axis), _named_count(ctx, bound, count, axis))
    parts: dict[int, Part] = dict(stops)
    for axis, start in starts.items():
        stop = stops.get(axis, shape[axis])
        parts[axis] = Slice(start, _named_size(ctx, start, stop, axis))
    return Region(parts, (*mask.predicates, *guards_of(ctx, parts.values())), len(shape))


def _restricting(
    ctx: Context,
    mask: Mask,
    shape: tuple[Sym, ...],
    node: ast.AST,
    same: Callable[[Poly, Poly], bool],
) -> Iterator[tuple[int, Bound, Sym]]:
    """The bounds that do not always hold, each with its axis and where it is on it."""
    for bound in mask.bounds:
        axis = len(shape) + bound.axis
        if axis < 0 or not same(shape[axis].poly, bound.extent.poly):
            text = "the mask's index tensor is not one of this access"
            raise Cannot(Reason.OTHER_MASK, text, node)
        count = _count(ctx, bound)
        room = _ZERO - count if bound.is_lower else count - bound.extent
        if ctx.facts.proves_at_least(room.poly, 0):
            text = f"this bound always holds: `{bound.limit.text}`"
            ctx.report(Reason.REDUNDANT_MASK, node, text)
            continue
        ctx.report(Reason.RECTANGULAR_MASK, node, "a rectangular mask is a shorter slice")
        yield axis, bound, count


def _earlier(ctx: Context, one: Sym | None, other: Sym) -> Sym:
    """The smaller of two counts."""
    if one is None or one.poly == other.poly:
        return other
    name = ctx.fresh_name("tile_size")
    ctx.emit(f"{name} = min({one.text}, {other.text})")
    if ctx.maybe_empty & {one.text, other.text}:
        ctx.maybe_empty.add(name)
    return _bind_count(ctx, name)


def _later(ctx: Context, one: Sym | None, other: Sym) -> Sym:
    """The larger of two first elements."""
    if one is None or one.poly == other.poly:
        return other
    name = ctx.fresh_name("first")
    ctx.emit(f"{name} = max({ctx.spell(one)}, {ctx.spell(other)})")
    return _bind_count(ctx, name)


def guards_of(ctx: Context, parts: Iterable[Part]) -> list[str]:
    """The conditions under which an instruction on so many elements has any."""
    counts = (part.extent if isinstance(part, Slice) else part for part in parts)
    return [f"{n.text} > 0" for n in counts if n.text in ctx.maybe_empty]


def _count(ctx: Context, bound: Bound) -> Sym:
    """How many values of the axis are below the bound, before clamping to the extent."""
    room = bound.limit - bound.offset
    c = bound.coefficient.value
    if c is None or c < 1:
        raise Cannot(Reason.OTHER_MASK, "a mask over an index tensor scaled by no positive literal")
    if c == 1:
        return room
    poly = ctx.facts.quotient((room + Sym.number(c - 1)).poly, bound.coefficient.poly)
    return Sym(poly, f"({(room + Sym.number(c - 1)).text}) // {c}", 2, names=room.names)


def _named_count(ctx: Context, bound: Bound, count: Sym, axis: int) -> Sym:
    """A variable `tile_rows = min(128, rows - i * 128)`, made once per block."""
    word = bound.limit.text if bound.limit.text.isidentifier() else _letter(axis)
    text = f"min({ctx.spell(bound.extent)}, {ctx.spell(count)})"
    name = _made_once(ctx, (count.poly, bound.extent.poly), f"tile_{word}", text)
    if not ctx.facts.proves_at_least(count.poly, 1):
        ctx.maybe_empty.add(name.text)
    return name


def _named_start(ctx: Context, start: Sym, axis: int) -> Sym:
    """The first element of a lower bound; `first_f = max(0, start)` where that may be less."""
    if ctx.facts.proves_at_least(start.poly, 0):
        return start
    return _made_once(
        ctx, (start.poly, _ZERO.poly), f"first_{_letter(axis)}", f"max(0, {ctx.spell(start)})"
    )


def _named_size(ctx: Context, start: Sym, stop: Sym, axis: int) -> Sym:
    """How many elements there are from one on; guarded where there may be none."""
    size = stop - start
    if size.value is not None and size.value > 0:
        return size
    key = size.poly, Poly.number(-1)
    text = f"{ctx.spell(stop)} - {ctx.spell(start, 2)}"
    name = _made_once(ctx, key, f"size_{_letter(axis)}", text)
    if not ctx.facts.proves_at_least(size.poly, 1):
        ctx.maybe_empty.add(name.text)
    return name


def _letter(axis: int) -> str:
    return "pf"[min(axis, 1)]


def _made_once(ctx: Context, key: tuple[Poly, Poly], wish: str, text: str) -> Sym:
    """A variable of the block for a number, made where it is not yet."""
    for made in reversed(ctx.counts):
        if key in made:
            return made[key]
    name = ctx.fresh_name(wish)
    ctx.emit(f"{name} = {text}")
    ctx.counts[-1][key] = sym = _bind_count(ctx, name)
    return sym


def _bind_count(ctx: Context, name: str) -> Sym:
    ctx.scope.bind(name, Const(None, name))
    sym = ctx.named(name, Poly.atom(ctx.atom(name)))
    ctx.scope.values[name] = sym
    return sym
