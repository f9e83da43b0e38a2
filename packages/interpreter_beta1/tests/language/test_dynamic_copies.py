"""tensor_copy_dynamic_src and _dst: a number in SBUF says where on chip to read and write."""

import numpy as np
import pytest

from neuroncore.errors import AccessError, ShapeError
from nki_beta1 import nisa, nki, nl

X = np.arange(4 * 16, dtype=np.float32).reshape(4, 16)
STARTS = np.array([[4, 0, 9]], np.int32)


def read(x, starts, source):
    """Three pieces (4, 2) of x, side by side; `source(tile, starts, b)` is where one comes from."""

    @nki.jit
    def kernel(x, starts):
        out = nl.ndarray((4, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        tile, at = nl.load(x), nl.load(starts)
        pieces = nl.ndarray((4, 6), dtype=x.dtype, buffer=nl.sbuf)
        i, j = nl.mgrid[0:4, 0:2]
        for b in nl.affine_range(3):
            pieces[i, 2 * b + j] = nisa.tensor_copy_dynamic_src(source(tile, at, b))
        nl.store(out, value=pieces)
        return out

    return kernel(x, starts)


ROW, COLUMN = nl.mgrid[0:4, 0:2]


@pytest.mark.parametrize(
    "source",
    [
        lambda tile, at, b: tile[ROW, at[0, b] + COLUMN],
        lambda tile, at, b: tile[ROW, COLUMN + at[0, b]],
        lambda tile, at, b: tile[ROW, COLUMN - 1 + at[0, b] + 1],
    ],
    ids=["number first", "expression first", "with constants"],
)
def test_a_piece_starts_where_the_number_says(source):
    expected = np.concatenate([X[:, s : s + 2] for s in STARTS[0]], axis=1)

    np.testing.assert_array_equal(read(X, STARTS, source), expected)


def test_a_number_alone_picks_one_element_per_partition():
    @nki.jit
    def kernel(x, starts):
        out = nl.ndarray((4, 1, 4), dtype=x.dtype, buffer=nl.shared_hbm)
        tile, at = nl.load(x), nl.load(starts)
        i, _, k = nl.mgrid[0:4, 0:1, 0:4]
        nl.store(out, value=nisa.tensor_copy_dynamic_src(tile[i, at[0, 1], k]))
        return out

    cube = X.reshape(4, 4, 4)
    picks = np.array([[0, 3]], np.int32)
    np.testing.assert_array_equal(kernel(cube, picks), cube[:, 3:4])


def test_a_destination_is_found_the_same_way():
    @nki.jit
    def kernel(x, starts):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        tile, at = nl.load(x), nl.load(starts)
        zeros = nl.zeros((4, 2), dtype=x.dtype)
        nisa.tensor_copy_dynamic_dst(dst=tile[ROW, at[0, 0] + COLUMN], src=zeros)
        nl.store(out, value=tile)
        return out

    expected = X.copy()
    expected[:, 4:6] = 0
    np.testing.assert_array_equal(kernel(X, STARTS), expected)


def test_a_number_and_indices_are_a_tile_for_functions(evaluate):
    def shifted(starts):
        return nl.add(starts[0, 0:1] + nl.arange(5)[None, :], 0)

    np.testing.assert_array_equal(evaluate(shifted, STARTS), 4 + np.arange(5)[None])


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda tile, at, b: tile[at[0, b], nl.arange(2)[None, :]], "in SBUF is indexed with a"),
        (lambda tile, at, b: tile[ROW, at[0, b] + 7 + COLUMN], "index out of range in dimension 1"),
    ],
    ids=["on partitions", "past the end"],
)
def test_places_that_are_none_are_rejected(source, message):
    with pytest.raises(AccessError, match=message):
        read(X, STARTS + 1, source)


@pytest.mark.parametrize("to", [False, True], ids=["from", "to"])
@pytest.mark.parametrize(
    ("mask", "inside"),
    [
        (lambda i, j: i < 3, np.s_[:3, :]),
        (lambda i, j: j < 2, np.s_[:, :2]),
        (lambda i, j: j < 0, np.s_[:, :0]),
    ],
    ids=["rows", "columns", "nothing"],
)
def test_a_mask_copies_what_it_selects(to, mask, inside):
    @nki.jit
    def kernel(x, starts):
        out = nl.ndarray((4, 16), dtype=x.dtype, buffer=nl.shared_hbm)
        tile, n = nl.load(x), nl.load(starts)
        i, j = nl.mgrid[0:4, 0:3]
        fives = nl.full((4, 16), 5, dtype=nl.float32)
        if to:
            nisa.tensor_copy_dynamic_dst(dst=fives[i, n[0, 2] + j], src=tile[i, j], mask=mask(i, j))
        else:
            fives[i, j] = nisa.tensor_copy_dynamic_src(tile[i, n[0, 2] + j], mask=mask(i, j))
        nl.store(out, value=fives)
        return out

    expected = np.full((4, 16), 5, np.float32)
    moved, still = expected[:, 9:12], expected[:, :3]
    (moved if to else still)[inside] = (X[:, :3] if to else X[:, 9:12])[inside]
    np.testing.assert_array_equal(kernel(X, STARTS), expected)


def test_a_mask_that_is_no_rectangle_is_rejected():
    @nki.jit
    def kernel(x, starts):
        tile, n = nl.load(x), nl.load(starts)
        i, j = nl.mgrid[0:4, 0:3]
        return nisa.tensor_copy_dynamic_src(tile[i, n[0, 2] + j], mask=i >= j)

    with pytest.raises(ShapeError, match="the mask does not select a rectangle"):
        kernel(X, STARTS)
