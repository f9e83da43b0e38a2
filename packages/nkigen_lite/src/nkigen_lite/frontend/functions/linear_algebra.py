"""Products and sums over named axes: transposes, one product of matrices, a reshape."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, prod
from typing import Any

import numpy as np

from nki_dtypes import float32
from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.promotion import (
    as_array,
    as_value,
    cast_value,
    dtype_of,
    fresh,
    narrowed,
    operand,
    resolved,
    shape_of,
    tape_of,
    traced,
)
from nkigen_lite.frontend.arrays.registry import implements, implements_ufunc
from nkigen_lite.frontend.arrays.scalars import as_number
from nkigen_lite.frontend.arrays.tape import Tape
from nkigen_lite.tensors.errors import (
    ArgumentError,
    BroadcastError,
    UnsupportedKeywordError,
    ValueRangeError,
)


@implements("outer")
def _outer(a: Any, b: Any) -> Any:
    return np.multiply(np.reshape(a, (-1, 1)), np.reshape(b, (1, -1)))


@implements("linalg.outer")
def _linalg_outer(x1: Any, x2: Any) -> Any:
    if any(len(shape_of(operand(x))) != 1 for x in (x1, x2)):
        raise ValueRangeError(
            "Input arrays must be one-dimensional",
            got=f"{shape_of(operand(x1))} and {shape_of(operand(x2))}",
        )
    return _outer(x1, x2)


@implements("inner")
def _inner(a: Any, b: Any) -> Any:
    if not shape_of(operand(a)) or not shape_of(operand(b)):
        return np.dot(a, b)
    return _tensordot(a, b, ((-1,), (-1,)))


@implements("vdot")
def _vdot(a: Any, b: Any) -> Any:
    return np.dot(np.reshape(a, (-1,)), np.reshape(b, (-1,)))


@implements("linalg.vecdot")
def _vecdot(x1: Any, x2: Any, axis: Any = -1) -> Any:
    x, y = (np.moveaxis(v, axis, -1) for v in (x1, x2))
    return np.matmul(np.expand_dims(x, -2), np.expand_dims(y, -1))[..., 0, 0]


@implements("tensordot")
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Both as matrices of (kept, summed) and (summed, kept) elements."""
    tape = tape_of(a, b)
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
    a, b = np.transpose(a, (*kept_a, *gone_a)), np.transpose(b, (*gone_b, *kept_b))
    terms = prod(lengths[0])
    made = np.dot(np.reshape(a, (-1, terms)), np.reshape(b, (terms, -1)))
    return np.reshape(made, (*a.shape[: len(kept_a)], *b.shape[len(gone_b) :]))


@implements("kron")
def _kron(a: Any, b: Any) -> Any:
    """Every element of a times all of b, blocks in the places of a's elements."""
    of_a, of_b = shape_of(operand(a)), shape_of(operand(b))
    ndim = max(len(of_a), len(of_b))
    of_a, of_b = ((1,) * (ndim - len(s)) + s for s in (of_a, of_b))
    blocks = np.reshape(a, [n for m in of_a for n in (m, 1)])
    every = np.reshape(b, [n for m in of_b for n in (1, m)])
    return np.reshape(blocks * every, [m * n for m, n in zip(of_a, of_b, strict=True)])


@implements("cross")
def _cross(
    a: Any, b: Any, axisa: Any = -1, axisb: Any = -1, axisc: Any = -1, axis: Any = None
) -> Any:
    """The product of vectors in three dimensions; in two, what would be the third element."""
    if axis is not None:
        axisa = axisb = axisc = axis
    tape = tape_of(a, b)
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
    lines = [_minor(x, y, i, j) for i, j in ((1, 2), (2, 0), (0, 1))]
    return np.moveaxis(np.stack(lines, -1), -1, axisc)


def _minor(x: Array, y: Array, i: int, j: int) -> Array:
    """x[i] y[j] - x[j] y[i], without the third element of vectors that have two."""
    if y.shape[-1] == j or x.shape[-1] == i:
        return -(x[..., j] * y[..., i])
    if x.shape[-1] == j or y.shape[-1] == i:
        return x[..., i] * y[..., j]
    return x[..., i] * y[..., j] - x[..., j] * y[..., i]


@implements("linalg.cross")
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


@implements("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(x: Array) -> Array:
    if x.ndim < 2:
        raise ValueRangeError("matrix transpose with ndim < 2 is undefined", got=str(x.spec))
    return np.swapaxes(x, -1, -2)


# --------------------------------------------------------------------------- ufuncs


@implements_ufunc("matvec")
def _matvec(tape: Tape, given: tuple[Any, ...]) -> Any:
    return np.matmul(given[0], np.expand_dims(given[1], -1))[..., 0]


@implements_ufunc("vecmat")
def _vecmat(tape: Tape, given: tuple[Any, ...]) -> Any:
    return np.matmul(np.expand_dims(given[0], -2), given[1])[..., 0, :]


@implements_ufunc("vecdot")
def _vecdot_ufunc(tape: Tape, given: tuple[Any, ...]) -> Any:
    return as_number(_vecdot(*given))


def outer_of(ufunc: np.ufunc, given: tuple[Any, ...]) -> Any:
    """`np.add.outer`: every element of one with every element of the other."""
    if len(given) != 2 or ufunc.signature is not None:
        raise ArgumentError("outer product only supported for binary functions")
    x, y = map(as_array, given)
    lot = (*shape_of(operand(x)), *(1,) * len(shape_of(operand(y))))
    return ufunc(np.reshape(x, lot), y)


implements("linalg.tensordot")(lambda x1, x2, axes=2: _tensordot(x1, x2, axes))
implements("linalg.matmul")(lambda x1, x2: np.matmul(x1, x2))


def _as_floats(x: Array) -> Array:
    """float64 of what NumPy itself does not count as floats: integers, bfloat16, fp8."""
    return x if issubclass(x.dtype.type, np.inexact) else x.astype(np.float64)


@implements("linalg.norm")
def _norm(x: Array, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Of vectors: 2 (and None), 1, 0, ±inf, p; of matrices: "fro" (and None), 1, -1, ±inf."""
    x = _as_floats(x)
    if axis is None and (ord is None or (x.ndim, ord) in ((1, 2), (2, "fro"))):
        return np.sqrt(np.sum(np.square(x), keepdims=keepdims))
    axes = views.axes_of(axis, x.ndim) if not isinstance(axis, (tuple, list)) else tuple(
        views.axis_of(d, x.ndim) for d in axis
    )  # fmt: skip
    if len(axes) == 1:
        return vector_norm(x, ord=2 if ord is None else ord, axis=axes, keepdims=keepdims)
    if len(axes) != 2:
        raise ValueRangeError("Improper number of dimensions to norm.", got=str(x.spec))
    return _matrix_norm(x, axes, ord, keepdims)


def _matrix_norm(x: Array, axes: tuple[int, ...], ord: Any, keepdims: bool) -> Any:
    if ord in (None, "fro", "f"):
        return np.sqrt(np.sum(np.square(x), axis=axes, keepdims=keepdims))
    if ord not in (1, -1, inf, -inf):
        raise UnsupportedKeywordError(
            f"np.linalg.norm: ord={ord!r} of matrices is not translated",
            expected="None, 'fro', 1, -1, inf, -inf", operand="ord",
        )  # fmt: skip
    summed, chosen = axes if abs(ord) == 1 else axes[::-1]
    lines = np.sum(np.abs(x), axis=summed, keepdims=True)
    found = (np.max if ord > 0 else np.min)(lines, axis=chosen, keepdims=True)
    return found if keepdims else np.squeeze(found, axes)


@implements("linalg.vector_norm")
def vector_norm(x: Array, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """`np.linalg.vector_norm`."""
    x = _as_floats(x)
    axes = views.axes_of(axis, x.ndim)
    if ord in (inf, -inf):
        return (np.max if ord > 0 else np.min)(np.abs(x), axis=axes, keepdims=keepdims)
    if ord == 0:
        return np.sum((x != 0).astype(x.spec.dtype.storage), axis=axes, keepdims=keepdims)
    if ord == 1:
        return np.sum(np.abs(x), axis=axes, keepdims=keepdims)
    if ord in (2, None):
        return np.sqrt(np.sum(np.square(x), axis=axes, keepdims=keepdims))
    if isinstance(ord, str):
        raise ValueRangeError(f"Invalid norm order {ord!r} for vectors", operand="ord")
    return np.power(np.sum(np.power(np.abs(x), ord), axis=axes, keepdims=keepdims), 1 / ord)


@implements_ufunc("matmul")
def _matmul(tape: Tape, given: tuple[Any, ...]) -> TracedArray:
    """`np.matmul`: stacks of matrices broadcast; a vector is a row on the left, a column on the
    right, and its axis is dropped."""
    a, b = given
    if not shape_of(a) or not shape_of(b):
        raise ValueRangeError("matmul: input operand does not have enough dimensions", got="rank 0")
    kinds = (dtype_of(a), dtype_of(b), None)
    *takes, makes = resolved("np.matmul", lambda: np.matmul.resolve_dtypes(kinds))
    left, right = (as_value(tape, x, t, "matmul") for x, t in zip((a, b), takes, strict=True))
    return fresh(tape, _product(tape, left, right, makes), makes)


def _product(tape: Tape, left: str, right: str, makes: np.dtype) -> str:
    rows, columns = tape.spec(left).shape, tape.spec(right).shape
    contracted = columns[-2] if len(columns) > 1 else columns[0]
    if rows[-1] != contracted:
        raise BroadcastError(
            "matmul: the contracted axes differ", expected=f"{rows[-1]} rows on the right",
            got=f"{rows} and {columns}",
        )  # fmt: skip
    if len(rows) == 1:
        left = tape.emit("reshape", left, shape=(1, *rows))
    if len(columns) == 1:
        right = tape.emit("reshape", right, shape=(*columns, 1))
    try:
        np.broadcast_shapes(rows[:-2], columns[:-2])
    except ValueError:
        raise BroadcastError(
            "matmul: batch axes could not be broadcast together", got=f"{rows} and {columns}"
        ) from None
    value = _multiplied(tape, left, right, makes)
    full = tape.spec(value).shape
    kept = full[:-2] + (full[-2:-1] if len(rows) > 1 else ()) + (
        full[-1:] if len(columns) > 1 else ()
    )  # fmt: skip
    return value if kept == full else tape.emit("reshape", value, shape=kept)


def _multiplied(tape: Tape, left: str, right: str, makes: np.dtype) -> str:
    if makes == np.bool_:
        numbers = (cast_value(tape, v, float32) for v in (left, right))
        count = tape.emit("matmul", *numbers, dtype=float32)
        return tape.emit("greater", count, tape.fill(0, float32))
    return tape.emit("matmul", left, right, dtype=narrowed(makes))


def _dtype_of_dot(a: Any, b: Any) -> np.dtype:
    kinds = tuple(np.empty((0,) * len(shape_of(x)), dtype_of(x)) for x in (a, b))
    makes = resolved("np.dot", lambda: getattr(np.dot(*kinds), "dtype", np.dtype(object)))
    if makes.kind == "O":
        one, other = (k.dtype for k in kinds)
        raise ArgumentError(
            f"np.dot: NumPy has no dtype for products of {one} and {other}, and makes objects",
            expected="operands of one dtype", got=f"{one} and {other}",
            hint="convert one of them: .astype",
        )  # fmt: skip
    return makes


def dot(tape: Tape, a: Any, b: Any) -> TracedArray:
    """`np.dot`: Σ over the last axis of a and the last but one (or only) of b."""
    makes = _dtype_of_dot(a, b)
    if not shape_of(a) or not shape_of(b):
        return np.multiply(*(traced(tape, x).astype(makes) for x in (a, b)))
    left, right = (as_value(tape, x, makes, "matmul") for x in (a, b))
    rows, columns = tape.spec(left).shape, tape.spec(right).shape
    if len(rows) <= 2 and len(columns) <= 2:
        return fresh(tape, _product(tape, left, right, makes), makes)
    if len(columns) == 1:
        right, columns = tape.emit("reshape", right, shape=(*columns, 1)), (*columns, 1)
        kept: tuple[int, ...] = rows[:-1]
    else:
        kept = (*rows[:-1], *columns[:-2], columns[-1])
    inner = len(columns) - 2
    moved = tape.emit("transpose", right, axes=(inner, *range(inner), inner + 1))
    flat = tape.emit("reshape", moved, shape=(columns[-2], prod(columns[:-2]) * columns[-1]))
    left = tape.emit("reshape", left, shape=(prod(rows[:-1]), rows[-1]))
    value = _product(tape, left, flat, makes)
    return fresh(tape, tape.emit("reshape", value, shape=kept), makes)


@implements("dot")
def _dot(a: Any, b: Any) -> Any:
    tape = tape_of(a, b)
    return dot(tape, *(operand(x) for x in (a, b)))
