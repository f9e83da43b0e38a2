"""What an index starts with and what a tile adds are one number: only their sum has bounds."""

import numpy as np
import pytest

from neuroncore.errors import AccessError
from nki_beta1 import nisa, nki, nl

X = np.arange(64, dtype=np.float32).reshape(8, 8)
P, Q = nl.arange(8)[:, None], nl.arange(4)[None, :]

FORMS = {
    "q + n - 1": (lambda n, q: q + n - 1, 3, [2, 3, 4, 5]),
    "n + q - 1": (lambda n, q: n + q - 1, 5, [4, 5, 6, 7]),
    "n + (q - 1)": (lambda n, q: n + (q - 1), 1, [0, 1, 2, 3]),
    "q - 1 + n": (lambda n, q: q - 1 + n, 1, [0, 1, 2, 3]),
    "n + q + 5": (lambda n, q: n + q + 5, -3, [2, 3, 4, 5]),
    "n + q + 3": (lambda n, q: n + q + 3, -2, [1, 2, 3, 4]),
    "n + q + 20": (lambda n, q: n + q + 20, -18, [2, 3, 4, 5]),
    "n - q": (lambda n, q: n - q, 5, [5, 4, 3, 2]),
    "n - 2 * q": (lambda n, q: n - 2 * q, 7, [7, 5, 3, 1]),
    "3 + n - q": (lambda n, q: n - q + 3, 0, [3, 2, 1, 0]),
    "n + q - np.int64(1)": (lambda n, q: n + q - np.int64(1), 3, [2, 3, 4, 5]),
}


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


def launched(use, number, kind=np.int32):
    """What `use(x, n)` gives as a (8, 4) value, or stores itself; n is one number of a tile."""

    @nki.jit
    def kernel(x, start):
        return use(x, nl.load(start)[0, 0])

    return kernel(X, np.array([[number]], kind))


def loaded(index):
    return lambda x, n: stored(nl.load(x[P, index(n, Q)]))


def copied(index):
    def use(x, n):
        piece = nl.ndarray((8, 4), dtype=nl.float32)
        piece[...] = nisa.tensor_copy_dynamic_src(nl.load(x)[P, index(n, Q)])
        return stored(piece)

    return use


def written(index):
    def use(x, n):
        out = nl.ndarray((8, 8), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, value=nl.load(x))
        nl.store(out[P, index(n, Q)], value=nl.full((8, 4), -1, dtype=nl.float32))
        return out

    return use


@pytest.mark.parametrize("place", [loaded, copied], ids=["HBM", "SBUF"])
@pytest.mark.parametrize(("index", "number", "columns"), FORMS.values(), ids=FORMS)
def test_an_index_may_begin_outside_and_be_moved_inside(place, index, number, columns):
    np.testing.assert_array_equal(launched(place(index), number), X[:, columns])


@pytest.mark.parametrize(("index", "number", "columns"), FORMS.values(), ids=FORMS)
def test_a_store_goes_where_the_moved_index_says(index, number, columns):
    expected = X.copy()
    expected[:, columns] = -1

    np.testing.assert_array_equal(launched(written(index), number), expected)


@pytest.mark.parametrize("kind", [np.uint32, np.int16])
def test_numbers_of_other_dtypes_are_moved_below_0_too(kind):
    result = launched(loaded(lambda n, q: q + n - 1), 3, kind)

    np.testing.assert_array_equal(result, X[:, 2:6])


def test_a_mask_that_leaves_out_the_first_indices_leaves_out_what_they_would_reach():
    def use(x, n):
        tile = nl.full((8, 4), -1, dtype=nl.float32)
        tile[P, Q] = nl.load(x[P, n + Q], mask=Q >= 2)
        return stored(tile)

    result = launched(use, -2)

    np.testing.assert_array_equal(result[:, 2:], X[:, :2])
    assert (result[:, :2] == -1).all()


@pytest.mark.parametrize("place", [loaded, copied], ids=["HBM", "SBUF"])
@pytest.mark.parametrize(
    ("index", "number", "says"),
    [
        (lambda n, q: q + n - 1, 0, "indices -1 to 2 on"),
        (lambda n, q: q + n - 1, 6, "indices 5 to 8 on"),
        (lambda n, q: n + q + 3, 2, "indices 5 to 8 on"),
        (lambda n, q: n - q, 2, "indices -1 to 2 on"),
        (lambda n, q: n - q, 8, "indices 5 to 8 on"),
    ],
)
def test_the_sum_stays_inside_and_the_error_names_the_sum(place, index, number, says):
    with pytest.raises(AccessError, match=says) as caught:
        launched(place(index), number)
    assert "the numbers come from a tile" in str(caught.value)


def test_more_indices_than_the_dimension_has_are_cut_by_a_mask():
    i = nl.arange(9)[None, :]

    with pytest.raises(AccessError, match="9 indices, moved by a tile, on a tensor of shape"):
        launched(lambda x, n: stored(nl.load(x[P, n + i - 1])), 1)
    tile = launched(lambda x, n: stored(nl.load(x[P, n + i - 1], mask=i < 8)), 1)
    np.testing.assert_array_equal(tile[:, :8], X)
