"""Elements at known places of rows and diagonals; what a computed mask picks and takes back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nkigen_lite import trace
from nkigen_lite.tensors.errors import DataDependentError

X = (np.arange(35).reshape(5, 7) * 13 % 31 - 11).astype(np.float32)
SQUARE = X[:, :5].copy()
ROWS = np.array([[0, -1, 3]] * 5) - np.arange(5)[:, None] % 2
HALVES: Any = ROWS * 0.5
COLUMNS = np.array([[4, 0, 2, 1, 3, 0, 4]])

TAKEN = {
    "along rows": lambda x: np.take_along_axis(x, ROWS, 1),
    "along columns": lambda x: np.take_along_axis(x, COLUMNS, 0),
    "of all": lambda x: np.take_along_axis(x, np.array([3, 0, -1]), None),
    "cross of two": lambda x: np.cross(x[:, :2], x[:, 2:4]),
    "cross of two and three": lambda x: np.cross(x[:, :2], x[:, 2:5]),
    "cross of three and two": lambda x: np.cross(x[:, :3], x[:, 3:5], axisc=0),
    "cross along an axis": lambda x: np.cross(x[:2], x[2:4], axis=0),
}


def scale(x):
    x[x < 0] *= 2


def by_name(x):
    m = x > 3
    x[m] = 1 - x[m]


def from_another(x):
    y, m = x * 3, x > 0
    x[m] += y[m] + x[m]


def in_a_view(x):
    part = x[1:4, ::2]
    part[part > 0] -= 5


def unpicked(x):
    x[(x > 0) & (x < 5)] //= 2


def rows(x):
    m = x[:, 0] > 0
    x[m] *= 2


def rows_beside_a_row(x):
    m = x[:, 0] > 0
    x[m] = np.maximum(x[m] * x[0], x[m, :] - x[:1])


def columns(x):
    m = x[0] > 0
    x[:, m] += x[:, m] * x[:, :1]


def columns_of_some_rows(x):
    m = x[0] > 0
    x[1:3, m] -= 2


def matrices(x):
    lots = x.reshape(5, 7, 1)
    lots[x > 0] *= 3


def one_number(x):
    m = x[0, 0] > x[1, 1]
    x[m] *= 2
    x[...] += 1
    number = x[3, 3, ...]
    number[~m] -= 7


def diagonal(x):
    np.fill_diagonal(x, 4)


def put(x):
    np.put_along_axis(x, ROWS, x[:, :1] * 2, 1)


WRITTEN = {
    "scaled where": scale,
    "by name": by_name,
    "from another": from_another,
    "in a view": in_a_view,
    "floor divided where": unpicked,
    "rows": rows,
    "rows beside a row": rows_beside_a_row,
    "columns": columns,
    "columns of some rows": columns_of_some_rows,
    "matrices of one element": matrices,
    "all or nothing": one_number,
    "diagonal": diagonal,
    "diagonal of a transpose": lambda x: np.fill_diagonal(x.T, 3),
    "diagonal in turn": lambda x: np.fill_diagonal(x, [1, 2]),
    "diagonal of a row": lambda x: np.fill_diagonal(x, x[1] * 2),
    "diagonal wrapped": lambda x: np.fill_diagonal(x.ravel()[:34].reshape(17, 2), 9, wrap=True),
    "diagonal of three axes": lambda x: np.fill_diagonal(x.ravel()[:27].reshape(3, 3, 3), 9),
    "put along rows": put,
    "put in all": lambda x: np.put_along_axis(x, np.array([0, 8, -1]), x[0, :3], None),
}


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("function", TAKEN.values(), ids=TAKEN)
@pytest.mark.filterwarnings("ignore:Arrays of 2-dimensional vectors")
def test_what_is_taken(moves, function, dtype):
    moves(function, X.astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("function", WRITTEN.values(), ids=WRITTEN)
def test_what_is_written(moves, function, dtype):
    moves(function, X.astype(dtype))


def test_a_diagonal_of_numbers_that_are_too_many(moves):
    moves(lambda x: np.fill_diagonal(x, np.arange(9)), SQUARE)


def returned(x):
    return x[x > 0]


def summed(x):
    return np.sum(x[x > 0])


def method(x):
    return x[x > 0].mean()


def other_mask(x):
    x[x > 1] = x[x > 0]


def mask_changed(x):
    m = x > 0
    picked = x[m]
    m[0] = False
    x[m] = picked


def of_its_length(x):
    x[x > 0] *= np.arange(3)


def of_its_rows(x):
    m = x[:, 0] > 0
    x[m] *= np.arange(3)[:, None]


def by_another_axis(x):
    m = (x[:, 0] > 0)[:5]
    x[m] = x.T[:5, :5][:, m]


@pytest.mark.parametrize(
    "function",
    [
        returned,
        summed,
        method,
        other_mask,
        mask_changed,
        of_its_length,
        of_its_rows,
        by_another_axis,
    ],
)
def test_what_needs_the_number_of_picked_elements_is_rejected_where_they_are_picked(function):
    with pytest.raises(
        DataDependentError, match=r"m = x < 0; x\[m\] = np.exp\(x\[m\]\)"
    ) as rejected:
        trace(function, "f32[5, 7]")
    place = rejected.value.place
    lines = (line + function.__code__.co_firstlineno for line in (1, 2))
    assert place is not None and place.file == __file__ and place.line in lines


REJECTED = {
    "a float into integers": (lambda x: halve(x), TypeError, "in place"),
    "indices of another rank": (
        lambda x: np.take_along_axis(x, np.array([1]), 0), ValueError, "indices[:, None]",
    ),
    "floats": (lambda x: np.take_along_axis(x, HALVES, 1), IndexError, "integer"),
    "computed indices": (
        lambda x: np.take_along_axis(x, x.argmax(1), 1), ValueError, "indices[:, None]",
    ),
    "outside": (lambda x: np.take_along_axis(x, ROWS + 7, 1), IndexError, "out of bounds"),
    "a line": (lambda x: np.fill_diagonal(x[0], 1), ValueError, "at least 2-d"),
    "unequal axes": (
        lambda x: np.fill_diagonal(x[:, :, None], 1), ValueError, "of equal length",
    ),
    "vectors of four": (lambda x: np.cross(x[:, :4], x[:, :4]), ValueError, "2 or 3 elements"),
    "two by linalg": (lambda x: np.linalg.cross(x[:, :2], x[:, :2]), ValueError, "np.cross takes"),
    "np.array": (lambda x: np.array(x), TypeError, "a copy: x.copy()"),
}  # fmt: skip


def halve(x):
    x[x < 0] *= 0.5


@pytest.mark.parametrize(("function", "kind", "says"), REJECTED.values(), ids=REJECTED)
def test_mistakes_say_what_to_do(function, kind, says):
    with pytest.raises(kind) as rejected:
        trace(function, "i32[5, 7]")
    assert says in str(rejected.value)
    assert rejected.value.place.file == __file__


def test_add_at_of_an_array_of_numpy_s_own_is_rejected_with_the_cure():
    def rows_summed(values, places):
        sums = np.zeros((64, 32), dtype=np.float32)
        np.add.at(sums, places, values)
        return sums

    with pytest.raises(DataDependentError, match="an array of NumPy's own cannot hold values"):
        trace(rows_summed, "f32[128,32]", "i32[128]")
