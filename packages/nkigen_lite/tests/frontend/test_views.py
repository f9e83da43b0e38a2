"""Writes through views land where NumPy lands them."""

from __future__ import annotations

import numpy as np
import pytest

from nkigen_lite import trace
from nkigen_lite.tensors.errors import UnsupportedFunctionError


def rows(x):
    y = x.copy()
    y[1:3] = 0
    y[-1, ::2] += x[0, ::2]
    return y


def through_views(x):
    y = x.copy()
    y.T[2:5][:, ::-1][0] = x[0, :4]
    y.reshape(-1)[::7] = -1
    y[None, 1].reshape(2, 4)[1, :] *= 3
    return y


def aliases(x):
    y = np.zeros_like(x)
    first, second = np.split(y, 2, axis=1)
    first[...] = x[:, :4]
    second += 1
    y[0] = 9
    return y, first, second.T


def copies(x):
    y = x.copy()
    flat, moved = y.T.reshape(-1), y.flatten()
    number = y[0, 0]
    y[0] = 5
    flat[0] = 7
    number += 1
    return y, flat, moved, number


def swapped(x):
    y = x.copy()
    y[:2], y[2:] = y[2:], y[:2]  # both views read the new y[:2]
    return y


def overlapping(x):
    y = x.copy()
    y[1:] = y[:-1]
    return y


def masks(x):
    y = x.copy()
    y[y < 0] = 0
    y.T[np.ones((8, 4), bool)] = 2.5
    return y


def casts(x):
    y = np.ones_like(x, dtype=np.int32)
    y[0] = x[0] * 10
    y[1] = 3.7
    y[2:] = [[7]]
    return y


def rows_by_loop(x):
    y = np.empty_like(x)
    for i, row in enumerate(x):
        y[i] = row * i
    return y


def out_keyword(x):
    y = np.zeros_like(x)
    np.add(x, 1, out=y)
    np.multiply(y, 2, out=y)
    return y


@pytest.mark.parametrize(
    "function",
    [rows, through_views, aliases, copies, swapped, overlapping, masks, casts, rows_by_loop,
     out_keyword],
)  # fmt: skip
def test_writes_land_where_numpys_land(function, agree):
    agree(function, np.random.default_rng(4).standard_normal((4, 8)).astype(np.float32))


def test_a_written_argument_is_written_back():
    def clear(x):
        x[1:] *= 2
        return x.sum()

    ours, numpys = (np.arange(6, dtype=np.float32) for _ in range(2))

    assert trace(clear, ours).run(ours) == clear(numpys)
    assert ours.tolist() == numpys.tolist()


def test_a_reshape_that_may_be_a_view_is_not_written_to():
    def unclear(x):
        y = (x.T + 1).reshape(-1)  # NumPy keeps the order of x.T: a view or a copy
        y[0] = 0
        return y

    with pytest.raises(UnsupportedFunctionError, match="may or may not be seen"):
        trace(unclear, "f32[4, 8]")


@pytest.mark.parametrize(
    "view",
    [lambda x: x, lambda x: x.T, lambda x: x[:, ::-2], lambda x: x[2:, 3], lambda x: x[None]],
    ids=["whole", "transposed", "backwards", "column", "new axis"],
)
def test_strides_are_numpys_in_bytes(view):
    x = np.zeros((5, 8), np.float32)
    seen = []

    trace(lambda x: seen.append(view(x).strides) or view(x) + 1, x)

    assert seen[-1] == view(x).strides
