"""Matrix products of every rank, as products of stacks of matrices."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from nki_dtypes import float32
from nkigen_lite.errors import ArgumentError, BroadcastError, ValueRangeError
from nkigen_lite.frontend.array import TracedArray
from nkigen_lite.frontend.promotion import (
    as_value,
    cast_value,
    dtype_of,
    fresh,
    narrowed,
    resolved,
    shape_of,
    traced,
)
from nkigen_lite.frontend.tape import Tape


def matmul(tape: Tape, a: Any, b: Any) -> TracedArray:
    """`np.matmul`: stacks of matrices broadcast; a vector is a row on the left, a column on the
    right, and its axis is dropped."""
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
