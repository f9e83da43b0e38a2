"""Tiles as indices: rows that the device chooses."""

import numpy as np
import pytest

from neuroncore.errors import AccessError, DTypeError
from neuroncore.spec import as_dtype
from nki_beta1 import nisa, nki, nl

X = np.arange(8 * 24, dtype=np.float32).reshape(8, 24)
CUBE = np.arange(5 * 8 * 6, dtype=np.float32).reshape(5, 8, 6)
ROWS = np.array([[3], [0], [7], [3]], np.int32)
ONE = np.array([[4]], np.int32)
COLUMNS = nl.arange(24)[None, :]


def loaded(x, index, access, **options):
    """The elements that `access(x, index tile)` names, loaded to SBUF and stored again."""

    @nki.jit
    def kernel(x, index):
        tile = nl.load(access(x, nl.load(index)), **options)
        out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=tile)
        return out

    return kernel(x, index)


ACCESSES = {
    "a number per row": (X, ROWS, lambda x, t: x[t, COLUMNS], X[ROWS[:, 0]]),
    "an access to the index tile": (
        X, ROWS, lambda x, t: x[t[nl.arange(4)[:, None], 0], COLUMNS], X[ROWS[:, 0]]),
    "a part of each row": (X, ROWS, lambda x, t: x[t, 2 * nl.arange(5)[None, :] + 1],
                           X[ROWS[:, 0], 1:11:2]),
    "a number per row in a later dimension": (
        CUBE, ROWS, lambda x, t: x[2, t, nl.arange(6)[None, :]], CUBE[2, ROWS[:, 0]]),
    "a number per row and slices": (X, ROWS, lambda x, t: x[t, 3:9], X[ROWS[:, 0], 3:9]),
    "one number and slices": (CUBE, ONE, lambda x, t: x[t[0, 0], :, 2:4], CUBE[4, :, 2:4]),
    "one number in the last dimension": (
        X, ONE, lambda x, t: x[0:8, t[0, 0]], X[:, 4:5]),
    "one number and index expressions": (
        X, ONE, lambda x, t: x[t, COLUMNS], X[4:5]),
    "8-bit numbers": (X, ROWS.astype(np.uint8), lambda x, t: x[t, COLUMNS], X[ROWS[:, 0]]),
    "floats that are whole numbers": (
        X, ROWS.astype(np.float32), lambda x, t: x[t, COLUMNS], X[ROWS[:, 0]]),
    "16-bit numbers": (X, ROWS.astype(np.int16), lambda x, t: x[t, COLUMNS], X[ROWS[:, 0]]),
}  # fmt: skip


@pytest.mark.parametrize(("x", "index", "access", "expected"), ACCESSES.values(), ids=ACCESSES)
def test_an_index_tile_chooses_what_is_loaded(x, index, access, expected):
    np.testing.assert_array_equal(loaded(x, index, access), expected)


def test_a_mask_leaves_index_rows_out_also_bad_ones():
    index = np.array([[1], [2], [99], [99]], np.int32)

    @nki.jit
    def kernel(x, index):
        i_p = nl.arange(4)[:, None]
        tile = nl.zeros((4, 24), dtype=np.float32)
        tile[i_p, COLUMNS] = nl.load(x[nl.load(index), COLUMNS], mask=i_p < 2)
        out = nl.ndarray((4, 24), dtype=np.float32, buffer=nl.shared_hbm)
        nl.store(out, value=tile)
        return out

    np.testing.assert_array_equal(kernel(X, index), np.vstack([X[1:3], np.zeros((2, 24))]))


def test_an_index_tile_chooses_the_rows_that_are_stored():
    @nki.jit
    def kernel(x, index):
        out = nl.ndarray((8, 24), dtype=np.float32, buffer=nl.shared_hbm)
        nl.store(out, value=0)
        nl.store(out[nl.load(index), COLUMNS], value=nl.load(x[0:4, :]))
        return out

    rows = np.array([[6], [0], [5], [2]], np.int32)
    expected = np.zeros_like(X)
    expected[rows[:, 0]] = X[:4]
    np.testing.assert_array_equal(kernel(X, rows), expected)


def test_dma_copy_skips_rows_outside_when_told_to():
    @nki.jit
    def kernel(x, index):
        tile = nisa.memset(shape=(4, 24), value=-1, dtype=np.float32)
        i_p = nl.arange(4)[:, None]
        nisa.dma_copy(src=x[nl.load(index), COLUMNS], dst=tile[i_p, COLUMNS],
                      oob_mode=nisa.oob_mode.skip)  # fmt: skip
        out = nl.ndarray((4, 24), dtype=np.float32, buffer=nl.shared_hbm)
        nl.store(out, value=tile)
        return out

    rows = np.array([[6], [8], [5], [-1]], np.int32)
    expected = np.full((4, 24), -1.0)
    expected[[0, 2]] = X[[6, 5]]
    np.testing.assert_array_equal(kernel(X, rows), expected)


def test_the_index_is_read_when_the_access_is_used_not_later():
    @nki.jit
    def kernel(x, index):
        rows = nl.load(index)
        tile = nl.load(x[rows, COLUMNS])
        rows[...] = nl.load(index) + 1
        out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=tile)
        return out

    np.testing.assert_array_equal(kernel(X, ROWS), X[ROWS[:, 0]])


INDEX_DTYPES = [nl.int32, nl.uint32, nl.int16, nl.uint8, nl.float32, nl.bfloat16]
FROM, TO = np.array([[3], [0], [6], [3]], np.int32), np.array([[4], [1], [7], [4]], np.int32)
HELD = {
    "a number per row": (lambda x, t: x[t, COLUMNS], X[TO[:, 0]]),
    "a number per row and slices": (lambda x, t: x[t, 0:24], X[TO[:, 0]]),
    "one number and slices": (lambda x, t: x[t[0, 0], 0:24], X[4:5].T),
    "one number": (lambda x, t: x[t[0:1, 0:1], COLUMNS], X[4:5]),
    "a moved index": (lambda x, t: x[t[0, 0] + nl.arange(2)[:, None], COLUMNS], X[4:6]),
    "an element in SBUF": (lambda x, t: nl.load(x)[:, t[0, 0]], X[:, 4:5]),
}


@pytest.mark.parametrize("dtype", INDEX_DTYPES, ids=lambda d: str(as_dtype(d)))
@pytest.mark.parametrize("name", HELD)
def test_a_held_access_follows_its_index_tile(name, dtype):
    access, expected = HELD[name]

    @nki.jit
    def kernel(x, index, to):
        rows = nl.copy(nl.load(index), dtype=dtype)
        held = access(x, rows)
        first = nl.copy(held) if held.buffer is nl.sbuf else nl.load(held)
        rows[...] = nl.copy(nl.load(to), dtype=dtype)
        tile = nl.copy(held) if held.buffer is nl.sbuf else nl.load(held)
        out = nl.ndarray((2, *tile.shape), dtype=tile.dtype, buffer=nl.shared_hbm)
        nl.store(out[0], value=first)
        nl.store(out[1], value=tile)
        return out

    before, after = kernel(X, FROM, TO)
    np.testing.assert_array_equal(after, expected)
    assert not np.array_equal(before, after)


@pytest.mark.parametrize("dtype", INDEX_DTYPES, ids=lambda d: str(as_dtype(d)))
def test_a_mask_leaves_out_rows_of_the_index_tile_that_nothing_has_written(dtype):
    @nki.jit
    def kernel(x, index):
        i = nl.arange(4)[:, None]
        rows = nl.ndarray((4, 1), dtype=dtype, buffer=nl.sbuf)
        rows[0:3, 0:1] = nl.load(index[0:3, 0:1])
        tile = nl.zeros((4, 24), dtype=x.dtype)
        tile[i, COLUMNS] = nl.load(x[rows[i, 0], COLUMNS], mask=i < 3)
        out = nl.ndarray((8, 24), dtype=x.dtype, buffer=nl.shared_hbm)
        nl.store(out, value=0.0)
        nl.store(out[rows[i, 0], COLUMNS], value=tile, mask=i < 3)
        return out

    expected = np.zeros_like(X)
    expected[[3, 0, 7]] = X[[3, 0, 7]]
    np.testing.assert_array_equal(kernel(X, ROWS), expected)


REJECTED = {
    "a row outside": (ROWS + 6, lambda x, t: x[t, COLUMNS], r"index 9 \(row 0 of the index tile\)"),
    "one number outside": (ONE + 4, lambda x, t: x[t[0, 0], 0:24], "index 8 on a tensor"),
    "two tiles": (ROWS, lambda x, t: x[t, t], r"dimensions \[0, 1\] are indexed with tiles"),
    "a row index beside the tile": (
        ROWS, lambda x, t: x[nl.arange(4)[:, None], t + COLUMNS.shape[0]], "index tile of shape"),
    "a tile on chip as base": (
        ROWS, lambda x, t: nl.load(x)[t, COLUMNS], "in SBUF is indexed with a tile"),
    "a slice before several numbers": (
        ROWS, lambda x, t: x[0:4, t], "index tile of shape"),
    "a constant that float32 rounds": (
        ONE + 16777213, lambda x, t: x[t[0, 0] + (nl.arange(4)[:, None] - 16777216), COLUMNS],
        "a tile and a constant index dimension 0, and float32 would round their sum"),
    "a square of numbers": (
        np.zeros((4, 4), np.int32), lambda x, t: x[t, 0:24], "index tile of shape"),
}  # fmt: skip


@pytest.mark.parametrize(("index", "access", "says"), REJECTED.values(), ids=REJECTED)
def test_what_no_dma_can_address_is_rejected(index, access, says):
    with pytest.raises(AccessError, match=says):
        loaded(X, index, access)


MOVING = {
    "rows of HBM": lambda x, t: nl.load(x[t, COLUMNS]),
    "one number in HBM": lambda x, t: nl.load(x[t[0:1, 0:1], 0:24]),
    "an element in HBM": lambda x, t: nl.load(x[t[0, 0], :]),
    "a moved index in HBM": lambda x, t: nl.load(x[0:8, t[0, 0] + nl.arange(4)[None, :]]),
    "an element in SBUF": lambda x, t: nl.copy(nl.load(x)[:, t[0, 0]]),
    "a store": lambda x, t: nl.store(
        nl.ndarray((8, 24), dtype=x.dtype, buffer=nl.shared_hbm)[t, COLUMNS], nl.load(x[0:4, :])),
}  # fmt: skip


@pytest.mark.parametrize("number", [1.5, np.nan])
@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16], ids=str)
@pytest.mark.parametrize("use", MOVING.values(), ids=MOVING)
def test_a_float_that_is_no_whole_number_moves_no_access(use, dtype, number):
    @nki.jit
    def kernel(x, index):
        use(x, nl.load(index, dtype=dtype))
        return x

    says = f"the index tile is {as_dtype(dtype)} and holds {number}"
    rows = ROWS.astype(np.float32)
    rows[0, 0] = number
    with pytest.raises(DTypeError, match=says) as caught:
        kernel(X, rows)
    assert "^^^" in str(caught.value) and "nl.int32" in str(caught.value)


@pytest.mark.parametrize("use", MOVING.values(), ids=MOVING)
def test_bools_move_no_access(use):
    @nki.jit
    def kernel(x, index):
        use(x, nl.load(index, dtype=bool))
        return x

    with pytest.raises(DTypeError, match="the index tile is bool") as caught:
        kernel(X, ROWS)
    assert "^^^" in str(caught.value) and "nl.int32" in str(caught.value)


def test_a_grid_is_a_tuple_of_index_expressions():
    np.testing.assert_array_equal(loaded(X, ROWS, lambda x, t: x[nl.mgrid[0:4, 3:9]]), X[0:4, 3:9])
