"""Diagonals and triangles of matrices."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from nkigen_lite.frontend.arrays import views
from nkigen_lite.frontend.arrays.array import Array, TracedArray
from nkigen_lite.frontend.arrays.promotion import fresh, operand, resolved, shape_of
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.frontend.arrays.views import broadcast_to
from nkigen_lite.frontend.functions.concatenation import pad
from nkigen_lite.tensors.errors import ArgumentError, ValueRangeError


def diagonal(a: Array, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Array:
    """Every (columns + 1)th element of the rows after one another."""
    if a.ndim < 2:
        raise ValueRangeError("diag requires an array of at least two dimensions", got=str(a.spec))
    last = np.moveaxis(a, (axis1, axis2), (-2, -1))
    last = last[..., : last.shape[-2], offset:] if offset >= 0 else last[..., -offset:, :]
    *outer, rows, columns = last.shape
    n = min(rows, columns)
    lot = (*outer, rows * columns)
    flat = views.part(last, "reshape", {"shape": lot}, lot, None)
    made = flat[..., : n * (columns + 1) if n else 0 : columns + 1]
    if last.element_strides is not None:
        made.element_strides = (
            *last.element_strides[:-2],
            last.element_strides[-2] + last.element_strides[-1],
        )
    return made


@implements("diagonal")
def _diagonal(a: Array, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Array:
    return views.read_only(diagonal(a, offset, axis1, axis2), "np.diagonal")


@implements("trace")
def _trace(a: Array, offset: Any = 0, axis1: Any = 0, axis2: Any = 1, dtype: Any = None) -> Any:
    return np.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


@implements("diag")
def _diag(v: Array, k: int = 0) -> Array:
    if v.ndim != 1:
        return views.read_only(diagonal(v, k), "np.diag")
    n = v.shape[0] + abs(k)
    row = np.reshape(v, (-1, 1))
    row = pad(row, ((max(-k, 0), max(k, 0)), (0, 0)))
    is_there = np.eye(n, k=k, dtype=bool)
    return np.where(is_there, np.broadcast_to(row, (n, n)), np.zeros((), v.dtype))


implements("linalg.diagonal")(lambda x, offset=0: _diagonal(x, offset, -2, -1))


implements("linalg.trace")(lambda x, offset=0, dtype=None: _trace(x, offset, -2, -1, dtype))


@implements("tril")
def tril(m: TracedArray, k: Any = 0) -> TracedArray:
    return _triangle("tril", m, k)


@implements("triu")
def triu(m: TracedArray, k: Any = 0) -> TracedArray:
    return _triangle("triu", m, k)


def _triangle(op: str, m: TracedArray, k: Any) -> TracedArray:
    if m.ndim < 2:
        n = m.size
        m = broadcast_to(m, (n, n)) if m.ndim else m
    if not m.ndim:
        raise ValueRangeError(f"np.{op} of an array of rank 0")
    diagonal = resolved(f"np.{op}", lambda: index(k))
    return fresh(m.tape, m.tape.emit(op, m.value, k=diagonal), m.dtype, (m,))


@implements("fill_diagonal")
def fill_diagonal(a: Array, val: Any, wrap: Any = False) -> None:
    """`np.fill_diagonal`: values in turn, from the first again where they are too few."""
    if a.ndim < 2:
        raise ValueRangeError("array must be at least 2-d", got=str(a.spec), operand="a")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueRangeError(
            "All dimensions of input must be of equal length", got=str(a.shape), operand="a"
        )
    step = 1 + sum(int(np.prod(a.shape[d:])) for d in range(1, a.ndim))
    end = a.shape[1] ** 2 if a.ndim == 2 and not wrap else a.size
    places = np.arange(0, min(end, a.size), step)
    if places.size:
        a[np.unravel_index(places, a.shape)] = _in_turn(operand(val), places.size)


def _in_turn(given: Any, count: int) -> Any:
    shape = shape_of(given)
    if not shape:
        return given
    size = int(np.prod(shape))
    if not size:
        raise ArgumentError("np.fill_diagonal: no values", got=str(shape), operand="val")
    line = np.reshape(given, (size,))
    return (line if size >= count else np.tile(line, -(-count // size)))[:count]
