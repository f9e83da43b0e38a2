"""Loads, stores and DMA copies of which a mask keeps elements that are not a rectangle."""

import numpy as np
import pytest

from neuroncore.errors import AccessError, ShapeError
from nki_beta1 import nisa, nki, nl

P, F = 16, 24
X = np.arange(P * F, dtype=np.float32).reshape(P, F) + 1
ROW, COLUMN = np.arange(P)[:, None], np.arange(F)[None, :]
MASKS = {
    "a triangle": lambda i, j: i >= j,
    "a triangle in a rectangle": lambda i, j: (i >= j) & (j < 4) & (i < 12),
    "either": lambda i, j: (i < 2) | (j < 3),
    "every third": lambda i, j: j % 3 == 0,
    "other than": lambda i, j: i != 7,
    "a checkerboard": lambda i, j: (i + j) % 2 == 0,
    "a rectangle": lambda i, j: (i < 5) & (j < 4),
    "nothing": lambda i, j: i > 99,
    "everything": lambda i, j: i < 99,
}


def chosen(mask, array=X, other=-1.0):
    return np.where(np.broadcast_to(MASKS[mask](ROW, COLUMN), X.shape), array, other)


def run(body, *arrays, shape=(P, F), dtype=np.float32):
    """What `body(out, i, j, *tensors)` leaves in a tensor of -1."""

    @nki.jit
    def kernel(*tensors):
        out = nl.full(shape, -1, dtype=dtype, buffer=nl.shared_hbm)
        body(out, *nl.mgrid[0:P, 0:F], *tensors)
        return out

    return kernel(*(arrays or (X,)))


@pytest.mark.parametrize("mask", MASKS)
def test_a_load_leaves_undefined_what_its_mask_leaves_out(mask):
    found = run(lambda out, i, j, x: nl.store(out, nl.load(x[i, j], mask=MASKS[mask](i, j))))

    np.testing.assert_array_equal(found, chosen(mask, other=np.nan))


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", [nl.float32, nl.bfloat16])
def test_a_load_that_is_assigned_keeps_the_others(mask, dtype):
    def body(out, i, j, x):
        tile = nl.full((P, F), 9, dtype=nl.float32)
        tile[i, j] = nl.load(x[i, j], mask=MASKS[mask](i, j), dtype=dtype)
        nl.store(out, tile)

    expected = chosen(mask, X.astype(dtype).astype(np.float32), 9)
    np.testing.assert_array_equal(run(body), expected)


@pytest.mark.parametrize("mask", MASKS)
def test_a_store_writes_what_its_mask_selects(mask):
    found = run(lambda out, i, j, x: nl.store(out[i, j], nl.load(x) * 2.0, mask=MASKS[mask](i, j)))

    np.testing.assert_array_equal(found, chosen(mask, 2 * X))


@pytest.mark.parametrize("mask", MASKS)
def test_a_number_is_stored_where_the_mask_selects(mask):
    found = run(lambda out, i, j, x: nl.store(out[i, j], 5, mask=MASKS[mask](i, j)))

    np.testing.assert_array_equal(found, chosen(mask, np.full_like(X, 5)))


@pytest.mark.parametrize("mask", MASKS)
def test_dma_copy_copies_what_its_mask_selects(mask):
    def body(out, i, j, x):
        tile = nl.full((P, F), 7, dtype=nl.float32)
        nisa.dma_copy(dst=tile[i, j], src=x[i, j], mask=MASKS[mask](i, j))
        nisa.dma_copy(dst=out[i, j], src=tile[i, j])

    np.testing.assert_array_equal(run(body), chosen(mask, other=7))


@pytest.mark.parametrize("mask", MASKS)
def test_a_transposing_load_reads_the_mask_on_the_axes_of_its_access(mask):
    def body(out, i, j, x):
        nl.store(out, nl.load_transpose2d(x[i, j], mask=MASKS[mask](i, j)))

    found = run(body, shape=(F, P))
    np.testing.assert_array_equal(found, chosen(mask, other=np.nan).T)


@pytest.mark.parametrize("mask", MASKS)
def test_elements_without_strides_are_copied_under_a_mask(mask):
    def body(out, i, j, x):
        tile = nl.load(x[i, (j * 5) % F], mask=MASKS[mask](i, j))
        nl.store(out[i, (j * 5) % F], tile, mask=MASKS[mask](i, j))

    expected = np.full_like(X, -1)
    columns = (np.arange(F) * 5) % F
    expected[:, columns] = chosen(mask, X[:, columns])
    np.testing.assert_array_equal(run(body), expected)


def test_what_a_mask_leaves_out_need_not_exist():
    """Rows of a flat tensor whose last one is not full."""
    flat = np.arange(370, dtype=np.float32)

    def body(out, i, j, x):
        inside = i * F + j < 370
        tile = nl.load(x[i * F + j], mask=inside)
        nl.store(out[i * F + j], value=nl.add(tile, 1.0, mask=inside), mask=inside)

    np.testing.assert_array_equal(run(body, flat, shape=(370,)), flat + 1)


def test_a_function_reads_no_element_that_its_mask_leaves_out():
    def body(out, i, j, x):
        shifted = i + j < F
        tile = nl.full((P, F), 9, dtype=nl.float32)
        tile[i, j] = nl.exp(nl.load(x)[i, i + j], mask=shifted)
        nl.store(out, tile)

    with pytest.raises(AccessError, match="axis 0 of an on-chip access"):
        run(lambda out, i, j, x: nl.store(out[:, 0:4], nl.copy(nl.load(x)[i, i + j], mask=j < 4)))
    columns = ROW + COLUMN
    taken = np.exp(np.take_along_axis(X / 99, columns.clip(0, F - 1), 1))
    np.testing.assert_allclose(run(body, X / 99), np.where(columns < F, taken, 9), rtol=2**-20)


def test_what_a_mask_selects_has_to_exist():
    with pytest.raises(AccessError, match="index out of range in dimension 1") as caught:
        run(lambda out, i, j, x: nl.load(x[i, i + j], mask=i + j < F + 1))
    assert "^" in str(caught.value)
    with pytest.raises(AccessError, match="index out of range in dimension 1"):
        run(lambda out, i, j, x: nl.store(out[i, i + j], nl.load(x), mask=i + j < F + 1))


def test_elements_that_meet_outside_the_mask_are_stored():
    def body(out, i, j, x):
        nl.store(out[i, j // 2], nl.load(x), mask=j % 2 == 0)

    expected = np.full_like(X, -1)
    expected[:, : F // 2] = X[:, ::2]
    np.testing.assert_array_equal(run(body), expected)


def test_one_axis_has_holes():
    def body(out, i, j, x):
        n = nl.arange(P)
        tile = nl.load(x[n], mask=n % 3 == 0)
        nl.store(out[n], value=tile, mask=n % 3 == 0)

    row = X[:, 0].copy()
    np.testing.assert_array_equal(
        run(body, row, shape=(P,)), np.where(np.arange(P) % 3 == 0, row, -1)
    )


def test_a_store_under_a_mask_into_what_it_was_loaded_from():
    def body(out, i, j, x):
        nl.store(out, nl.load(x))
        nl.store(out[i, j], nl.load(out[i, j]) * 2.0, mask=i >= j)

    np.testing.assert_array_equal(run(body), np.where(ROW >= COLUMN, 2 * X, X))


@pytest.mark.parametrize("mask", ["a triangle", "either"])
def test_rows_that_a_tile_names_are_loaded_in_part(mask):
    rows = np.arange(P)[::-1, None].astype(np.int32)

    def body(out, i, j, x, rows):
        named = nl.load(rows)
        nl.store(out, nl.load(x[named, nl.arange(F)[None, :]], mask=MASKS[mask](i, j)))

    np.testing.assert_array_equal(run(body, X, rows), chosen(mask, X[::-1], np.nan))


def test_rows_that_a_tile_names_are_stored_as_rectangles():
    def body(out, i, j, x, rows):
        nl.store(out[nl.load(rows), nl.arange(F)[None, :]], nl.load(x), mask=i >= j)

    with pytest.raises(ShapeError, match=r"nl\.store: the mask does not select a rectangle"):
        run(body, X, np.arange(P)[:, None].astype(np.int32))
