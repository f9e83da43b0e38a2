"""Triangles of matrices: columns compared with rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nki_dtypes import bool_, float32
from nkigen_lite.ops import Expr, choose
from nkigen_lite.passes.expression import result
from nkigen_lite.passes.rewriting import Match, RewriteRule, of


def _is_below(m: Match, k: int, shape: tuple[int, ...]) -> Expr:
    """Whether column - row <= k, for a matrix of this shape."""
    *_, rows, columns = shape
    row, column = (
        Expr(m, m.emit("iota", shape=along, axis=axis, dtype=float32))
        for axis, along in enumerate(((rows, 1), (1, columns)))
    )
    return column.call("less_equal", row + float(k))


def half(upper: bool) -> Callable[[Match], str]:
    """tril or triu: zeros elsewhere, also where x is not finite."""

    def replacement(m: Match) -> str:
        x, zero = Expr(m, m["x"]), Expr(m, m.fill(0, m.dtype))
        below = _is_below(m, m.root.attrs["k"] - upper, m.root.spec.shape)
        return result(m, choose(below, *((zero, x) if upper else (x, zero))))

    return replacement


def _diagonal(array: np.ndarray) -> int | None:
    """The k of a matrix that is one number where column - row <= k and another elsewhere."""
    rows, columns = array.shape
    bits = array.view(f"u{array.dtype.itemsize}")
    lower = bits == bits[-1, 0]
    if (bits[~lower] != bits[0, -1]).any():
        return None
    for k in (int(lower[-1].sum()) - rows, int(lower[0].sum()) - 1):
        if (lower == np.tri(rows, columns, k, dtype=bool)).all():
            return k
    return None


def is_triangle(m: Match) -> bool:
    """Whether a constant is such a matrix."""
    constant = m.root.attrs["value"]
    is_matrix = constant.uniform is None and len(constant.spec.shape) == 2 and constant.spec.size
    return bool(is_matrix) and _diagonal(constant.array) is not None


def of_numbers(m: Match) -> str:
    """A constant triangle."""
    array = m.root.attrs["value"].array
    k = _diagonal(array)
    assert k is not None
    below = _is_below(m, k, array.shape)
    if m.dtype is bool_:
        return (below if array[-1, 0] else ~below).value
    low, high = (Expr(m, m.fill(array[at], m.dtype)) for at in ((-1, 0), (0, -1)))
    return result(m, choose(below, low, high))


RULES = (
    RewriteRule("tril", of("tril", "x"), half(upper=False)),
    RewriteRule("triu", of("triu", "x"), half(upper=True)),
    RewriteRule("triangle", of("constant"), of_numbers, is_triangle),
)
