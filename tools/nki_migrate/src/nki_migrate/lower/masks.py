"""Masks: rectangular bounds become element counts, the rest a TODO (NKI1170–NKI1175)."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from nki_migrate.facts.values import Bound, Const, Index, Mask, Sym, Unknown, Value
from nki_migrate.lower.context import Cannot, Context

__all__ = ["Region", "compare", "conjoin", "region_of"]

_MIRROR: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}
_ONE = Sym.number(1)


@dataclass(frozen=True, slots=True)
class Region:
    """Where an instruction works: element counts of some result axes, and conditions around it."""

    limits: dict[int, Sym]
    guards: list[str]


def conjoin(a: Value, b: Value) -> Value:
    """mask & mask."""
    if not (isinstance(a, Mask) and isinstance(b, Mask)):
        return Unknown("a mask built from something else than comparisons", "NKI1172")
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
        return Unknown(f"`{text}` is not a comparison of an index tensor with a number", "NKI1172")
    return _bound(left, operator, right, text)


def _bound(index: Index, operator: ast.cmpop, limit: Sym, text: str) -> Mask:
    if len(index.terms) != 1:
        return Mask(opaque=f"`{text}` bounds a sum of index tensors")
    axis, coefficient = index.terms[0]
    if isinstance(operator, ast.LtE):
        operator, limit = ast.Lt(), limit + _ONE
    if not isinstance(operator, ast.Lt):
        return Mask(opaque=f"`{text}` is not an upper bound")
    from_end = axis - len(index.extents)
    return Mask((Bound(from_end, coefficient, index.offset, limit, index.extents[axis]),))


def region_of(ctx: Context, mask: Mask, shape: tuple[Sym, ...], node: ast.AST) -> Region:
    """The element counts that a mask leaves of an access of that shape.

    Bounds that hold anyway vanish (NKI1174). A count that may be zero or less guards the
    instruction.
    """
    if mask.opaque:
        raise Cannot("NKI1172", f"mask {mask.opaque}; no slice says the same", node)
    limits: dict[int, Sym] = {}
    guards = list(mask.predicates)
    if guards:
        ctx.report("NKI1171", node, "a predicate on numbers is an `if`")
    for bound in mask.bounds:
        axis = len(shape) + bound.axis
        if axis < 0 or not ctx.facts.same(shape[axis].poly, bound.extent.poly):
            raise Cannot("NKI1172", "the mask's index tensor is not one of this access", node)
        count = _count(ctx, bound)
        if ctx.facts.proves_at_least((count - bound.extent).poly, 0):
            ctx.report("NKI1174", node, f"this bound always holds: `{bound.limit.text}`")
            continue
        ctx.report("NKI1170", node, "a rectangular mask is a shorter slice")
        name, sure = _named_count(ctx, bound, count, axis)
        if axis in limits and limits[axis].poly != name.poly:
            both = ctx.fresh_name("tile_size")
            ctx.emit(f"{both} = min({limits[axis].text}, {name.text})")
            name = _bind_count(ctx, both)
        limits[axis] = name
        if not sure:
            guards.append(f"{name.text} > 0")
    return Region(limits, guards)


def _count(ctx: Context, bound: Bound) -> Sym:
    """How many values of the axis satisfy the bound, before clamping to the extent."""
    room = bound.limit - bound.offset
    c = bound.coefficient.value
    if c is None or c < 1:
        raise Cannot("NKI1172", "a mask over an index tensor scaled by no positive literal")
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
    from nki_migrate.facts.symbols import Poly

    ctx.scope.bind(name, Const(None, name))
    sym = ctx.named(name, Poly.atom(ctx.atom(name)))
    ctx.scope.values[name] = sym
    return sym
