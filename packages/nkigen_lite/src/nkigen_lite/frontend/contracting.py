"""Products and sums over named axes: transposes, one product of matrices, a reshape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np

from nkigen_lite.errors import (
    ArgumentError,
    BroadcastError,
    UnsupportedFunctionError,
    UnsupportedKeywordError,
    ValueRangeError,
)
from nkigen_lite.frontend import joining, views
from nkigen_lite.frontend.arranging import diagonal
from nkigen_lite.frontend.numbers import as_number
from nkigen_lite.frontend.promotion import as_array, operand, shape_of, traced
from nkigen_lite.frontend.tape import Tape

Array = Any
"""A traced array: NumPy's stubs say that its functions give arrays of its own."""


def _outer(a: Any, b: Any) -> Any:
    return np.multiply(np.reshape(a, (-1, 1)), np.reshape(b, (1, -1)))


def _linalg_outer(x1: Any, x2: Any) -> Any:
    if any(len(shape_of(operand(x))) != 1 for x in (x1, x2)):
        raise ValueRangeError(
            "Input arrays must be one-dimensional",
            got=f"{shape_of(operand(x1))} and {shape_of(operand(x2))}",
        )
    return _outer(x1, x2)


def _inner(a: Any, b: Any) -> Any:
    if not shape_of(operand(a)) or not shape_of(operand(b)):
        return np.dot(a, b)
    return _tensordot(a, b, ((-1,), (-1,)))


def _vdot(a: Any, b: Any) -> Any:
    return np.dot(np.reshape(a, (-1,)), np.reshape(b, (-1,)))


def _vecdot(x1: Any, x2: Any, axis: Any = -1) -> Any:
    x, y = (np.moveaxis(v, axis, -1) for v in (x1, x2))
    return np.matmul(np.expand_dims(x, -2), np.expand_dims(y, -1))[..., 0, 0]


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Both as matrices of (kept, summed) and (summed, kept) elements."""
    tape = joining.tape_of(a, b)
    a, b = traced(tape, a), traced(tape, b)
    try:
        of_a, of_b = axes
    except TypeError:
        n = axes.__index__()
        of_a, of_b = range(a.ndim - n, a.ndim), range(n)
    gone_a, gone_b = (
        [views.axis_of(d, x.ndim) for d in (g if isinstance(g, (Sequence, range)) else (g,))]
        for x, g in ((a, of_a), (b, of_b))
    )
    lengths = [[x.shape[d] for d in g] for x, g in ((a, gone_a), (b, gone_b))]
    if lengths[0] != lengths[1]:
        raise BroadcastError("np.tensordot: shape-mismatch for sum", got=f"{a.shape} and {b.shape}")
    kept_a, kept_b = ([d for d in range(x.ndim) if d not in g]
                      for x, g in ((a, gone_a), (b, gone_b)))  # fmt: skip
    left = np.reshape(np.transpose(a, (*kept_a, *gone_a)), (-1, prod(lengths[0])))
    right = np.reshape(np.transpose(b, (*gone_b, *kept_b)), (prod(lengths[0]), -1))
    made = np.dot(left, right)
    return np.reshape(
        made, (*(a.shape[d] for d in kept_a), *(b.shape[d] for d in kept_b))
    )  # fmt: skip


def _kron(a: Any, b: Any) -> Any:
    """Every element of a times all of b, blocks in the places of a's elements."""
    of_a, of_b = shape_of(operand(a)), shape_of(operand(b))
    ndim = max(len(of_a), len(of_b))
    of_a, of_b = ((1,) * (ndim - len(s)) + s for s in (of_a, of_b))
    blocks = np.reshape(a, [n for m in of_a for n in (m, 1)])
    every = np.reshape(b, [n for m in of_b for n in (1, m)])
    return np.reshape(blocks * every, [m * n for m, n in zip(of_a, of_b, strict=True)])


def _cross(
    a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Any:
    """The product of vectors in three dimensions; in two, what would be the third element."""
    if axis is not None:
        axisa = axisb = axisc = axis
    tape = joining.tape_of(a, b)
    vectors: list[Array] = [traced(tape, v) for v in (a, b)]
    x, y = (np.moveaxis(v, d, -1) for v, d in zip(vectors, (axisa, axisb), strict=True))
    lengths = x.shape[-1], y.shape[-1]
    if not {*lengths} <= {2, 3}:
        raise ValueRangeError(
            "incompatible dimensions for cross product", expected="vectors of 2 or 3 elements",
            got=f"{lengths[0]} and {lengths[1]}", hint="axisa=, axisb= say which axis has them",
        )  # fmt: skip
    if lengths == (2, 2):
        return x[..., 0] * y[..., 1] - x[..., 1] * y[..., 0]
    lines = [_turned_by(x, y, i, j) for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.moveaxis(np.stack(lines, -1), -1, axisc)


def _turned_by(x: Array, y: Array, i: int, j: int) -> Array:
    """x[i] y[j] - x[j] y[i], without the third element of vectors that have two."""
    if y.shape[-1] == j or x.shape[-1] == i:
        return -(x[..., j] * y[..., i])
    if x.shape[-1] == j or y.shape[-1] == i:
        return x[..., i] * y[..., j]
    return x[..., i] * y[..., j] - x[..., j] * y[..., i]


def _linalg_cross(x1: Any, x2: Any, axis: Any = -1) -> Any:
    """Of three elements only."""
    lengths = [v.shape[views.axis_of(axis, v.ndim)] for v in map(np.atleast_1d, (x1, x2))]
    if lengths != [3, 3]:
        raise ValueRangeError(
            "Both input arrays must be (arrays of) 3-dimensional vectors",
            expected="vectors of 3 elements", got=" and ".join(map(str, lengths)),
            hint="np.cross takes vectors of 2 elements too",
        )  # fmt: skip
    return _cross(x1, x2, axis=axis)


def _matrix_transpose(x: Array) -> Array:
    if x.ndim < 2:
        raise ValueRangeError("matrix transpose with ndim < 2 is undefined", got=str(x.spec))
    return np.swapaxes(x, -1, -2)


# -------------------------------------------------------------------------- einsum


def _einsum(*operands: Any, out: Any = None) -> Any:
    """`np.einsum` of a text such as "bij,bjk->bik"; more than two operands pair by pair."""
    if len(operands) < 2:
        raise ValueRangeError(
            "must specify the einstein sum subscripts string and at least one operand"
        )
    if out is not None:
        raise UnsupportedKeywordError(
            "np.einsum: out= is not translated", operand="out", hint="out[...] = np.einsum(…)"
        )
    if not isinstance(operands[0], str):
        raise UnsupportedFunctionError(
            "np.einsum with lists of axes is not translated", hint="write them as 'ij,jk->ik'"
        )
    text, *given = operands
    tape = joining.tape_of(*given)
    arrays = [traced(tape, g) for g in given]
    names, wanted = _labels(text, [a.ndim for a in arrays])
    if len(arrays) == 1 and {*names[0]} == {*wanted}:
        return _Term(arrays[0], names[0]).once().in_order(wanted)
    dtype = joining.common_dtype("np.einsum", arrays)
    terms = [_Term(a.astype(dtype), n).once() for a, n in zip(arrays, names, strict=True)]
    while len(terms) > 1:
        first, second, *rest = terms
        needed = {*wanted, *(n for t in rest for n in t.names)}
        terms = [first.times(second, needed), *rest]
    return terms[0].summed({*wanted}).in_order(wanted)


def _labels(text: str, ranks: list[int]) -> tuple[list[str], str]:
    """The axes of each operand and of the result, one letter each."""
    inputs, arrow, wanted = text.replace(" ", "").partition("->")
    names = inputs.split(",")
    if len(names) != len(ranks):
        raise ValueRangeError(
            "np.einsum: another number of operands than in the text",
            expected=str(len(names)), got=str(len(ranks)),
        )  # fmt: skip
    spare = [c for c in ascii_letters if c not in text]
    rest = [r - len(n.replace("...", "")) for n, r in zip(names, ranks, strict=True)]
    most = max((r for n, r in zip(names, rest, strict=True) if "..." in n), default=0)
    dots = "".join(spare[:most])
    full = [
        n.replace("...", dots[most - r :] if r > 0 else "")
        for n, r in zip(names, rest, strict=True)
    ]
    for n, r in zip(full, ranks, strict=True):
        if len(n) != r or not set(n) <= set(ascii_letters):
            raise ValueRangeError(f"np.einsum: {n!r} does not name {r} axes", got=repr(text))
    every = "".join(full)
    if not arrow:
        once = sorted({c for c in every if every.count(c) == 1} - set(dots))
        return full, dots + "".join(once)
    if dots and "..." not in wanted:
        raise ValueRangeError(
            "np.einsum: output has more dimensions than subscripts given in einstein sum, but no "
            "'...' ellipsis provided", got=repr(text),
        )  # fmt: skip
    wanted = wanted.replace("...", dots)
    if len(set(wanted)) < len(wanted) or not set(wanted) <= set(every):
        raise ValueRangeError(f"np.einsum: no such result as {wanted!r}", got=repr(text))
    return full, wanted


class _Term:
    """An array with a letter for each axis."""

    def __init__(self, array: Array, names: str) -> None:
        self.array, self.names = array, names

    def length(self, name: str) -> int:
        return self.array.shape[self.names.index(name)] if name in self.names else 1

    def once(self) -> _Term:
        """Every letter once: a letter that stands twice is a diagonal."""
        term = self
        for name in self.names:
            while term.names.count(name) > 1:
                one = term.names.index(name)
                other = term.names.index(name, one + 1)
                if term.array.shape[one] != term.array.shape[other]:
                    raise BroadcastError(f"np.einsum: two lengths of axis {name!r}")
                left = "".join(n for d, n in enumerate(term.names) if d not in (one, other))
                term = _Term(diagonal(term.array, 0, one, other), left + name)
        return term

    def summed(self, needed: set[str]) -> _Term:
        """Without the axes that nothing needs."""
        gone = tuple(d for d, n in enumerate(self.names) if n not in needed)
        if not gone:
            return self
        array = self.array
        made = np.any(array, gone) if array.dtype == bool else (
            np.sum(array, axis=gone, dtype=array.spec.dtype.storage)
        )  # fmt: skip
        left = "".join(n for d, n in enumerate(self.names) if d not in gone)
        return _Term(made, left)

    def in_order(self, names: str) -> Any:
        """The axes in another order."""
        return np.transpose(self.array, [self.names.index(n) for n in names])

    def lying(self, names: str) -> Array:
        """The axes in this order, those that it has not of one element."""
        mine = "".join(n for n in names if n in self.names)
        return np.reshape(self.in_order(mine), tuple(self.length(n) for n in names))

    def times(self, other: _Term, needed: set[str]) -> _Term:
        """The product, summed over what both have and nothing else needs."""
        one = self.summed({*needed, *other.names})
        two = other.summed({*needed, *self.names})
        shared = [n for n in one.names if n in two.names]
        for n in shared:
            if one.length(n) != two.length(n) and 1 not in (one.length(n), two.length(n)):
                raise BroadcastError(f"np.einsum: two lengths of axis {n!r}")
        gone = "".join(n for n in shared if n not in needed and one.length(n) == two.length(n))
        batch = "".join(n for n in shared if n not in gone)
        left = "".join(n for n in one.names if n not in shared)
        right = "".join(n for n in two.names if n not in shared)
        names = batch + left + right
        if not gone:
            made = one.lying(names) * two.lying(names)
            return _Term(made, names).summed(needed)
        a, b = one.lying(batch + left + gone), two.lying(batch + gone + right)
        sizes = [prod(t.length(n) for n in g) for t, g in ((one, left), (one, gone), (two, right))]
        lead = len(batch)
        matrices = (
            np.reshape(a, (*a.shape[:lead], sizes[0], sizes[1])),
            np.reshape(b, (*b.shape[:lead], sizes[1], sizes[2])),
        )
        made = np.matmul(*matrices)
        shape = (*made.shape[:lead], *map(one.length, left), *map(two.length, right))
        return _Term(np.reshape(made, shape), names).summed(needed)


# --------------------------------------------------------------------------- ufuncs


def _matvec(tape: Tape, given: tuple[Any, ...]) -> Any:
    return np.matmul(given[0], np.expand_dims(given[1], -1))[..., 0]


def _vecmat(tape: Tape, given: tuple[Any, ...]) -> Any:
    return np.matmul(np.expand_dims(given[0], -2), given[1])[..., 0, :]


def _vecdot_ufunc(tape: Tape, given: tuple[Any, ...]) -> Any:
    return as_number(_vecdot(*given))


_PRODUCTS = {"matvec": _matvec, "vecmat": _vecmat, "vecdot": _vecdot_ufunc}
PRODUCTS: dict[np.ufunc, Callable[[Tape, tuple[Any, ...]], Any]] = {
    getattr(np, name): made for name, made in _PRODUCTS.items() if hasattr(np, name)
}
"""Universal functions of vectors, where NumPy has them."""


def outer_of(ufunc: np.ufunc, given: tuple[Any, ...]) -> Any:
    """`np.add.outer`: every element of one with every element of the other."""
    if len(given) != 2 or ufunc.signature is not None:
        raise ArgumentError("outer product only supported for binary functions")
    x, y = map(as_array, given)
    lot = (*shape_of(operand(x)), *(1,) * len(shape_of(operand(y))))
    return ufunc(np.reshape(x, lot), y)


NAMES: dict[str, Any] = {
    "outer": _outer, "inner": _inner, "vdot": _vdot, "tensordot": _tensordot, "einsum": _einsum,
    "kron": _kron, "cross": _cross,
    "linalg.cross": _linalg_cross,
    "matrix_transpose": _matrix_transpose, "linalg.matrix_transpose": _matrix_transpose,
    "linalg.outer": _linalg_outer, "linalg.tensordot": lambda x1, x2, axes=2: (
        _tensordot(x1, x2, axes)
    ),
    "linalg.vecdot": _vecdot, "linalg.matmul": lambda x1, x2: np.matmul(x1, x2),
}  # fmt: skip
"""NumPy's name → the same of traced arrays."""
