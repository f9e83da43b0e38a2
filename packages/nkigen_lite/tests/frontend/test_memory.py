"""What is a view, what a copy, what is read-only, and in which order: NumPy's answer each time."""

from __future__ import annotations

import numpy as np
import pytest

from nkigen_lite import trace
from nkigen_lite.tensors.errors import UnsupportedKeywordError

SQUARE = np.arange(9, dtype=np.float32).reshape(3, 3)
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

LOOKS = {
    "rot90 by nothing": lambda x: np.rot90(x, 0),
    "rot90 half around": lambda x: np.rot90(x, 2),
    "einsum diagonal": lambda x: np.einsum("ii->i", x),
    "einsum transposed": lambda x: np.einsum("ij->ji", x),
    "einsum diagonal of a transpose": lambda x: np.einsum("ii->i", x.T[::-1]),
    "einsum as it is": lambda x: np.einsum("ij", x),
    "einsum summed": lambda x: np.einsum("ij->i", x),
    "ravel": np.ravel,
    "ravel of a column": lambda x: np.ravel(x[:, 0]),
    "ravel in memory order": lambda x: np.ravel(x.T, order="K"),
    "ravel in Fortran's order": lambda x: x.T.ravel("F"),
    "ravel in another order": lambda x: x.ravel("F"),
    "ravel in any order": lambda x: x.T.ravel("A"),
    "flatten in memory order": lambda x: x.T.flatten("K"),
    "reshape": lambda x: x.reshape(-1),
    "reshape copied": lambda x: x.reshape(-1, copy=True),
    "np.reshape copied": lambda x: np.reshape(x, (-1,), copy=True),
    "np.reshape not copied": lambda x: np.reshape(x, (-1,), copy=False),
    "reshape in Fortran's order": lambda x: x.T.reshape((1, -1), order="F"),
    "reshape in another order": lambda x: np.reshape(x, (-1,), order="F"),
    "astype": lambda x: x.astype(np.float32),
    "astype not copied": lambda x: x.astype(np.float32, copy=False),
    "astype in its order": lambda x: x.astype(np.float32, "C", copy=False),
    "astype in another order": lambda x: x.astype(np.float32, "F", copy=False),
    "np.astype": lambda x: np.astype(x, np.float32, copy=False),
    "nan_to_num": np.nan_to_num,
    "nan_to_num in place": lambda x: np.nan_to_num(x, copy=False),
    "meshgrid": lambda x: np.meshgrid(x[0], x[1])[0],
    "meshgrid sparse": lambda x: np.meshgrid(x[0], x[1], sparse=True)[1],
    "meshgrid sparse views": lambda x: np.meshgrid(x[0], x[1], sparse=True, copy=False)[1],
    "conj": lambda x: x.conj(),
    "conjugate": np.conjugate,
    "positive": lambda x: +x,
    "repeat": lambda x: np.repeat(x, 2, 0),
    "repeat once": lambda x: np.repeat(x, 1),
    "tile": lambda x: np.tile(x, (2, 1)),
    "tile once": lambda x: np.tile(x, 1),
    "roll": lambda x: np.roll(x, 0),
    "take": lambda x: np.take(x, [0, 1], 0),
    "pad": lambda x: np.pad(x, 0),
    "clip": lambda x: np.clip(x, 0, 5),
    "round": np.round,
    "real": np.real,
    "diag made": lambda x: np.diag(x[0]),
    "tril": np.tril,
    "squeeze": lambda x: np.squeeze(x[None]),
    "diff of nothing": lambda x: np.diff(x, 0),
    "atleast_1d": np.atleast_1d,
    "broadcast_arrays of one shape": lambda x: np.broadcast_arrays(x, x)[0],
    "zeros_like reshaped": lambda x: np.zeros_like(x.T).reshape(-1),
    "split": lambda x: np.array_split(x, 2)[0],
    "index array": lambda x: x[[0, 2]],
    "index mask": lambda x: x[np.array([True, False, True])],
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_writes_reach_what_they_reach_in_numpy(look, agree):
    def written_to(x):
        whole = x.copy()
        seen = look(whole)
        seen[...] = 99
        return whole, seen + 0

    def written_behind(x):
        whole = x.copy()
        seen = look(whole)
        whole[...] = whole * 2 + 1
        return whole, seen + 0

    agree(written_to, SQUARE)
    agree(written_behind, SQUARE)


READ_ONLY = {
    "diagonal": np.diagonal,
    "diagonal method": lambda x: x.diagonal(),
    "part of a diagonal": lambda x: np.diagonal(x)[1:],
    "diag": np.diag,
    "linalg.diagonal": np.linalg.diagonal,
    "broadcast_to": lambda x: np.broadcast_to(x, (2, 3, 3)),
}


@pytest.mark.parametrize("look", READ_ONLY.values(), ids=READ_ONLY)
def test_what_numpy_makes_read_only_is_read_only(look, agree):
    def written_behind(x):
        whole = x.copy()
        seen = look(whole.T)
        whole[...] = whole * 2 + 1
        return seen + 0

    def written_to(x):
        look(x.copy())[...] = 0

    agree(written_behind, SQUARE)
    agree(written_to, SQUARE)


ORDERS = {
    "ravel": lambda x, order: x.ravel(order),
    "np.ravel": lambda x, order: np.ravel(x, order=order),
    "flatten": lambda x, order: x.flatten(order),
    "reshape": lambda x, order: x.reshape((4, -1), order=order),
    "copy": lambda x, order: np.copy(x, order=order).ravel("K"),
    "copy method": lambda x, order: x.copy(order).ravel("K"),
    "astype": lambda x, order: x.astype(np.int32, order).ravel("K"),
    "ones_like": lambda x, order: (np.ones_like(x, order=order) * 1).shape and (
        np.zeros_like(x, order=order).reshape(-1)
    ),
}  # fmt: skip
SEEN_AS = {
    "C": lambda x: x,
    "F": lambda x: x.T,
    "axes exchanged": lambda x: x.transpose(1, 0, 2),
    "part": lambda x: x[:, 1:],
    "backwards": lambda x: x[:, ::-1].T,
    "one column": lambda x: x[..., :1],
}


@pytest.mark.parametrize("order", ["C", "F", "A", "K", "f", "Z"])
@pytest.mark.parametrize("seen_as", SEEN_AS.values(), ids=SEEN_AS)
@pytest.mark.parametrize("function", ORDERS.values(), ids=ORDERS)
def test_every_order_is_numpys(function, seen_as, order, agree):
    agree(lambda x: function(seen_as(x), order), CUBE)


def test_an_order_of_memory_that_is_not_known_is_rejected():
    with pytest.raises(UnsupportedKeywordError, match="not known here"):
        trace(lambda x: np.ravel(x.T + x, order="K"), SQUARE)
