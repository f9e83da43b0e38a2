"""`x[places] = value` with lists, arrays and masks, through the emitted source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nkigen_lite import trace
from nkigen_lite.tensors.errors import BroadcastError, DataDependentError, IndexRangeError

X = np.arange(60).reshape(3, 4, 5) % 23 - 11
MASK = np.arange(12).reshape(3, 4) % 5 > 2
ODD = np.arange(3) % 2 == 1
EVERY = np.arange(3)[:, None]
Write = tuple[Any, Callable[[Any], Any]]

KNOWN: dict[str, Write] = {
    "rows": ([0, 2], lambda x: 7),
    "rows backwards": ([2, 0], lambda x: x[:2]),
    "a row twice": ([1, 1, 0], lambda x: x),
    "rows by two axes": ([[0, 2], [1, 1]], lambda x: 5),
    "pairs": (([0, 2], [1, 3]), lambda x: x[0, :2]),
    "columns": ((slice(None), [3, 1]), lambda x: x[:, :2] + x[:, 1:3]),
    "columns, one value each": ((slice(None), slice(None), [4, 2, 0, 1]), lambda x: x[:, :, :1]),
    "a permutation": ((..., [0, 2, 1, 3, 4]), lambda x: x[::-1]),
    "columns twice": ((..., [0, 2, 0, 2, 4]), lambda x: x[::-1]),
    "axes apart": (([0, 1], slice(None), [2, 4]), lambda x: x[:2, :4, 0]),
    "a number beside a list": ((0, slice(None), [2, 4]), lambda x: x[1, :2, :4]),
    "a grid": ((EVERY, np.array([0, 2])), lambda x: x[:, :2]),
    "a row mask": (np.arange(3) % 2 == 0, lambda x: x[:2]),
    "a mask": (MASK, lambda x: x[0, 0]),
    "a mask, value by value": (MASK, lambda x: x.reshape(-1, 5)[: int(MASK.sum())]),
    "a list of truths": ([[True, False, True, True]] * 3, lambda x: 1),
    "negative and stepped": ((slice(1, None), [-1, -3], slice(None, None, 2)), lambda x: 9),
    "nothing": ([], lambda x: 3),
    "a new axis": ((None, [0, 2]), lambda x: x[:2]),
    "leading ones": ((slice(None), [3, 1]), lambda x: x[None, :, :2]),
    "True": (True, lambda x: x[0]),
    "False": (False, lambda x: 4),
    "a number of rank 0": (np.array(1), lambda x: x[0]),
}


@pytest.mark.parametrize("dtype", ["float32", "int32", "int8", "bool"])
@pytest.mark.parametrize(("key", "value"), KNOWN.values(), ids=KNOWN)
def test_what_is_written_at_known_places(moves, key, value, dtype):
    def write(x: Any) -> Any:
        y = x.copy()
        y[key] = value(x)
        return y

    moves(write, X.astype(dtype))


def added_up(x: Any) -> None:
    x[[0, 2]] += 1
    x.reshape(12, 5)[1:][[0, 5]] = 3


def transposed(x: Any) -> None:
    x.T[[1, 4], 2] = x[0, 0, 1:3, None]


@pytest.mark.parametrize("function", [added_up, transposed])
def test_arguments_are_written_to_through_views(moves, function):
    moves(function, X.astype(np.float32))


def test_a_fraction_written_to_integers_is_cut_off(moves):
    def write(x: Any) -> None:
        x[[0, 2, 4, 5, 7, 8, 10]] = 2.75
        x[[1, 3]] = np.array([-1.5, 1.5])

    moves(write, np.arange(12, dtype=np.int32))


def rows_of_a_mask(x: Any) -> None:
    mask = x[:, 0, 0] > 0
    x[mask] = x[0]
    x[mask] = 2


def columns_of_a_mask(x: Any) -> None:
    x[:, x[0, :, 0] > -5] = 1
    x[1:, :, x[0, 0] > -9] = x[1:, :, :1]
    x[x[:, :, 0] > 3] = x[0, 0]
    x[..., x[0, 1] < 0] = 0


@pytest.mark.parametrize("function", [rows_of_a_mask, columns_of_a_mask])
def test_a_computed_mask_of_some_axes_chooses(moves, function):
    moves(function, X.astype(np.float32))


def test_one_value_at_many_places_is_one_choice(moves):
    def write(x: Any) -> None:
        x[:, np.arange(64) * 37 % 512] = 0

    kernel = moves(write, np.ones((128, 512), np.float32))

    assert kernel.stats.instructions <= 6


REJECTED = {
    "beyond": ([0, 3], lambda x: 1, IndexRangeError, "out of bounds for axis 0 with size 3"),
    "shapes": ([0, 1], lambda x: x, BroadcastError, "could not broadcast"),
    "text": ("a", lambda x: 1, IndexRangeError, "only integers, slices"),
    "floats": ([0.5], lambda x: 1, IndexRangeError, "integer (or boolean) type"),
    "large mask": (np.ones((4, 4), bool), lambda x: 1, IndexRangeError, "did not match"),
}


@pytest.mark.parametrize(("key", "value", "error", "says"), REJECTED.values(), ids=REJECTED)
def test_what_numpy_rejects_is_rejected(key, value, error, says):
    def write(x: Any) -> None:
        x[key] = value(x)

    with pytest.raises((IndexError, ValueError)):
        write(X.copy())
    with pytest.raises(error, match=says.replace("(", r"\(").replace(")", r"\)")):
        trace(write, X.astype(np.float32))


def test_values_that_a_computed_mask_would_pick_are_rejected():
    def write(x: Any) -> None:
        x[x > 0] = x[0, 0, :3]

    with pytest.raises(DataDependentError, match="one number, or one part for all places"):
        trace(write, X.astype(np.float32))
