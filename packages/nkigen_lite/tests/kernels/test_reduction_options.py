"""`initial=`, `where=` and `out=` of reductions, `dtype=` of universal functions, decimals."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite import trace
from nkigen_lite.tensors.errors import (
    ArgumentError,
    BroadcastError,
    IntegerRangeError,
    ValueRangeError,
)

X = np.arange(-40, 40, dtype=np.float32).reshape(8, 10) / 4
N = np.arange(-40, 40, dtype=np.int32).reshape(8, 10)
ODD = np.arange(10) % 2 == 1

EXACT = {
    "sum initial": lambda x, n: (np.sum(x, 1, initial=2), n.sum(0, initial=-7)),
    "sum fraction of integers": lambda x, n: n.sum(0, initial=1.5),
    "prod initial": lambda x, n: np.prod(n[:, :3], 1, initial=3),
    "max initial": lambda x, n: (np.max(x, 0, initial=2.5), np.amin(n, 1, initial=-3)),
    "max keepdims": lambda x, n: np.max(x, 1, keepdims=True, initial=0),
    "max of nothing": lambda x, n: x + np.max(x[:, :0], 1, keepdims=True, initial=2.5),
    "min of nothing": lambda x, n: n * np.min(n[:0, :0], initial=-3),
    "sum where": lambda x, n: (np.sum(x, 0, where=x > 0), n.sum(where=ODD)),
    "prod where": lambda x, n: np.prod(n, 0, where=(n > 0) & (n < 9)),
    "max where": lambda x, n: np.max(x, 1, where=ODD, initial=-np.inf),
    "min where": lambda x, n: n.min(0, where=n > 0, initial=99),
    "any where": lambda x, n: (np.any(x > 9, 1, where=ODD), np.all(n < 39, where=ODD)),
    "nothing chosen": lambda x, n: (x.sum(0, where=False), np.all(x, 1, where=False)),
    "reduce": lambda x, n: np.add.reduce(n, axis=1, initial=5, where=ODD),
    "dtype of a ufunc": lambda x, n: (
        np.add(n, 1, dtype=np.float32),
        np.multiply(x, 2, dtype="f4"),
        np.negative(n, dtype=np.int64),
    ),
    "mean where": lambda x, n: (np.mean(x, 0, where=x > 0), x.mean(1, where=ODD, keepdims=True)),
    "round": lambda x, n: (np.round(n, 2), np.round(x)),
}  # fmt: skip


@pytest.mark.parametrize("function", EXACT.values(), ids=EXACT)
def test_exactly_what_numpy_gives(moves_in_32_bits, function):
    moves_in_32_bits(function, X, N)


@pytest.fixture(name="moves_in_32_bits")
def _moves_in_32_bits(moves: Any) -> Any:
    def check(function: Any, *arrays: Any) -> None:
        def narrowed(*given: Any) -> Any:
            found = function(*given)
            found = found if isinstance(found, tuple) else (found,)
            return tuple(f.astype(np.int32) if f.dtype == np.int64 else f for f in found)

        moves(narrowed, *arrays)

    return check


def into_out(x: Any, y: Any) -> Any:
    found = np.sum(x, axis=0, out=y)
    return found * 2


def test_out_is_written_and_returned(moves):
    moves(into_out, X, np.zeros(10, np.float32))
    moves(into_out, np.ones((5, 2), np.float32), np.zeros(2, np.float32))
    moves(lambda x, y: np.add.reduce(x, 0, None, y) + 1, X, np.zeros(10, np.float32))


def test_mean_and_deviation_take_out(assert_lowers_right, normal):
    def function(x: Any) -> Any:
        y = np.zeros_like(x[0])
        np.mean(x, axis=0, out=y)
        return y

    assert_lowers_right(function, normal(9, 6))


def test_deviations_of_what_a_mask_chooses(assert_lowers_right, normal):
    assert_lowers_right(
        lambda x: (x.var(0, where=x > -1), np.std(x, 1, where=ODD[:6])), normal(9, 6)
    )
    assert_lowers_right(
        lambda x: (x.var(where=x > 0, ddof=2), np.mean(x, 1, where=x < 2)), normal(9, 6)
    )


INTO: dict[str, tuple[Any, Any]] = {
    "sum of floats as integers": ((10,), lambda x, n, o: np.sum(x, 0, dtype="i4", out=o)),
    "max cut off": ((10,), lambda x, n, o: x.max(0, out=o)),
    "truths": ((8,), lambda x, n, o: np.any(x > 9, 1, out=o)),
    "places": ((8,), lambda x, n, o: np.argmax(x, 1, out=o)),
    "running sums": ((8, 10), lambda x, n, o: np.cumsum(n, 1, out=o)),
    "running products": ((8, 10), lambda x, n, o: n.cumprod(1, out=o)),
    "clip": ((8, 10), lambda x, n, o: np.clip(n, -5, 5, out=o)),
    "clip a row": ((8, 10), lambda x, n, o: n[0].clip(-5, 5, o)),
    "broadcast": ((8, 10), lambda x, n, o: np.add(n[0], 1, out=o)),
    "where": ((8, 10), lambda x, n, o: np.add(n, 1, out=o, where=x > 0)),
    "where of a row": ((8, 10), lambda x, n, o: np.multiply(n[0], 2, out=o, where=x > 0)),
    "where nowhere": ((8, 10), lambda x, n, o: np.add(n, 1, out=o, where=False)),
    "narrow where": ((8, 10), lambda x, n, o: np.add(n.astype("i1"), 1, out=o, where=ODD)),
    "two results": ((8, 10), lambda x, n, o: np.divmod(n, 7, out=(o, n))),
    "differences": ((10,), lambda x, n, o: np.subtract.reduce(n, out=o)),
}


@pytest.mark.parametrize(("shape", "function"), INTO.values(), ids=INTO)
def test_out_takes_what_numpy_puts_there(moves, shape, function):
    def write(x: Any, n: Any, out: Any) -> None:
        function(x, n, out)

    moves(write, X, N, np.full(shape, 1000, np.int32))


def test_dtypes_have_the_names_that_numpy_gives_them(moves_in_32_bits):
    moves_in_32_bits(lambda x, n: (n.astype("i8"), n.astype("f").astype("l"), x.astype("?")), X, N)


def test_decimals_are_rounded_as_numpy_rounds(assert_lowers_right, normal):
    assert_lowers_right(lambda x: (np.round(x, 2), x.round(decimals=1)), normal(9, 60) * 8)


def test_decimals_of_bfloat16_stay_bfloat16_at_every_step(exactly, normal):
    exactly(lambda x: np.round(x, 1), (normal(9, 60) * 8).astype(ml_dtypes.bfloat16))


def test_powers_of_signed_integers(exactly):
    x, y = np.arange(-9, 9, dtype=np.int32), np.arange(18, dtype=np.int32)
    exactly(lambda x, y: x**y, x, y)
    exactly(lambda x, y: x**y, x.astype(np.int8), y.astype(np.int8))


REJECTED = {
    "max where": (lambda x, n: np.max(x, where=x > 0), ValueRangeError, "have an identity"),
    "mask of numbers": (lambda x, n: np.sum(x, where=n), ArgumentError, "no array of bool"),
    "large mask": (lambda x, n: np.sum(x[0], where=x > 0), BroadcastError, "more elements"),
    "initial out of range": (
        lambda x, n: np.max(n.astype(np.int8), initial=300), IntegerRangeError, "300",
    ),
    "casting": (lambda x, n: np.add(x, 1, dtype=np.int32), ArgumentError, "cast"),
    "negative power": (lambda x, n: n ** np.int32(-1), ValueRangeError, "negative integer powers"),
    "out of another kind": (lambda x, n: np.clip(x, 0, 1, out=n), ArgumentError, "do not go into"),
    "root into integers": (lambda x, n: np.std(x, 0, out=n[0]), ArgumentError, "do not go into"),
    "narrow out": (lambda x, n: np.add(x, 1, out=x[0]), BroadcastError, "shape of the output"),
    "mask of numbers for a mean": (lambda x, n: x.mean(where=n), ArgumentError, "no array of bool"),
    "mask of numbers for a ufunc": (
        lambda x, n: np.add(x, 1, out=x, where=n), ArgumentError, "no array of bool",
    ),
    "two axes": (lambda x, n: np.subtract.reduce(x, None), ValueRangeError, "not reorderable"),
    "nothing to subtract": (lambda x, n: np.subtract.reduce(x[:0]), ValueRangeError, "identity"),
    "truths": (lambda x, n: np.subtract.reduce(x > 0), ArgumentError, "boolean subtract"),
    "tens of truths": (lambda x, n: np.round(x > 0, -1), ArgumentError, "no tens"),
}  # fmt: skip


@pytest.mark.parametrize(("function", "error", "says"), REJECTED.values(), ids=REJECTED)
def test_what_numpy_rejects_is_rejected(function, error, says):
    with pytest.raises(error, match=says):
        trace(function, X, N)
