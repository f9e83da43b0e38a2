"""Reductions of a short last axis of what broadcasting makes, or of what was transposed: element by
element, side by side.

`((a[:, None] - b[None]) ** 2).sum(-1)` of points in the plane is the sum of two arrays, each made
from a column of a and a column of b: rows of many elements instead of many rows of two.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from nki_dtypes import float32
from nkigen_lite.ir import Node
from nkigen_lite.ops import Kind
from nkigen_lite.passes.rewriting import Match, RewriteRule, of

_COMBINED = {"sum": "add", "max": "maximum", "min": "minimum", "prod": "multiply"}
_MOST_ELEMENTS = 16
_MOST_OPERATIONS = 12
_FEWER = 8
"""How many times fewer elements an operand has than what is reduced: most are read again."""
_MANY = 1024


def is_short(m: Match) -> bool:
    """Whether few elements of a formula are reduced, made from much smaller arrays or from
    arrays in which they are not adjacent."""
    (x,) = m.root.operands
    shape = m.spec(x).shape
    if m.root.op not in _COMBINED or m.dtype is not float32 or not shape:
        return False
    last = m.root.attrs["axes"] == (len(shape) - 1,)
    if not last or not 1 < shape[-1] <= _MOST_ELEMENTS or prod(shape[:-1]) < _MANY:
        return False
    nodes = list(_formula(m, x, set()))
    operations = sum(node is not None for _, node in nodes)
    large = (v for v, n in nodes if n is None and _FEWER * m.spec(v).size > prod(shape))
    return 0 < operations <= _MOST_OPERATIONS and all(_is_scattered(m, v) for v in large)


def _is_scattered(m: Match, value: str) -> bool:
    """Whether the elements along the last axis are far from each other in memory."""
    node = m.build.by_name.get(value)
    return node is not None and node.op == "transpose" and (
        node.attrs["axes"][-1] != len(node.spec.shape) - 1
    )  # fmt: skip


def _formula(m: Match, value: str, seen: set[str]) -> Iterator[tuple[str, Node | None]]:
    """(value, the operation that makes it or None for an operand of the formula), each once."""
    if value in seen or len(seen) > 4 * _MOST_OPERATIONS:
        return
    seen.add(value)
    node = m.build.by_name.get(value)
    if not _is_inside(node):
        yield value, None
        return
    assert node is not None
    yield value, node
    for operand in node.operands:
        yield from _formula(m, operand, seen)


def _is_inside(node: Node | None) -> bool:
    return node is not None and (
        node.record.kind is Kind.elementwise or node.op == "broadcast_to"
    )  # fmt: skip


def one_by_one(m: Match) -> str:
    """The formula for each element of the axis, combined two by two."""
    (x,) = m.root.operands
    count = m.spec(x).shape[-1]
    parts = [_at(m, x, k, count, {}) for k in range(count)]
    while len(parts) > 1:
        pairs = [parts[n : n + 2] for n in range(0, len(parts), 2)]
        parts = [m.emit(_COMBINED[m.root.op], *p) if p[1:] else p[0] for p in pairs]
    whole = m.spec(x).shape[:-1]
    found = parts[0]
    if m.spec(found).shape != (*whole, 1):
        found = m.emit("broadcast_to", found, shape=(*whole, 1))
    if m.root.spec.shape != (*whole, 1):
        found = m.emit("reshape", found, shape=m.root.spec.shape)
    return found


def _at(m: Match, value: str, k: int, count: int, known: dict[str, str]) -> str:
    """The value where the last axis, of `count` elements or one, is at k."""
    if value not in known:
        node, shape = m.build.by_name.get(value), m.spec(value).shape
        if not _is_inside(node):
            known[value] = _column(m, value, k) if shape[-1:] == (count,) else value
        elif node is not None and node.op == "broadcast_to":
            known[value] = _at(m, node.operands[0], k, count, known)
        elif node is not None:
            operands = (_at(m, o, k, count, known) for o in node.operands)
            known[value] = m.emit(node.op, *operands, **node.attrs)
    return known[value]


def _column(m: Match, value: str, k: int) -> str:
    *others, _ = m.spec(value).shape
    starts, ones = (*(0 for _ in others), k), (1,) * (len(others) + 1)
    return m.emit("slice", value, starts=starts, sizes=(*others, 1), steps=ones)


RULES = (RewriteRule("short_axis", of("*", "x"), one_by_one, is_short),)
