"""Diagonals of matrices that a kernel computes: selected in every row, where they are on chip."""

from __future__ import annotations

from nki_dtypes import float32
from nkigen_lite.ops import Expr, choose
from nkigen_lite.passes.rewriting import Match, RewriteRule, is_float, of

MOST_ROWS = 512
"""Rows up to which all columns take VectorE no longer than a DMA has latency, about 2 us: 128 rows
of 512 elements at a time, one element and cycle."""

_VIEWS = ("reshape", "transpose", "slice", "broadcast_to")


def _is_diagonal(m: Match) -> bool:
    """Whether every (n + 1)th element of an n x n matrix is read."""
    shape, attrs = m.spec(m["x"]).shape, m.root.attrs
    if len(shape) != 2 or shape[0] != shape[1] or not 1 < shape[0] <= MOST_ROWS:
        return False
    places = tuple(attrs["starts"]), m.root.spec.shape, tuple(attrs["steps"])
    return is_float(m) and places == ((0,), shape[:1], (shape[0] + 1,))


def _selected(m: Match) -> str | None:
    """Of a matrix that is computed, the sum of each row without what is beside the diagonal; of
    its transpose too. The diagonal of an argument is read from HBM."""
    value = m["x"]
    while (node := m.build.by_name.get(value)) is not None and node.op == "transpose":
        (value,) = node.operands
    if node is None or node.op in _VIEWS:
        return None
    count = m.root.spec.shape[0]
    row, column = (
        Expr(m, m.emit("iota", shape=shape, axis=axis, dtype=float32))
        for axis, shape in enumerate(((count, 1), (1, count)))
    )
    here = choose(row.call("equal", column), Expr(m, value), m.constant(0, m.dtype))
    return m.result(here.call("sum", axes=(1,), keepdims=False))


RULES = (RewriteRule(
    "diagonal_on_chip", of("slice", of("reshape", "x")), _selected, _is_diagonal
),)  # fmt: skip
