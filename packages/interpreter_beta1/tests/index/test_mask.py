"""mask=: rectangles shrink an instruction, others merge, reductions take the identity."""

import numpy as np
import pytest

from neuroncore.errors import AccessError, ShapeError
from nki_beta1 import nisa, nki, nl

P, F = 8, 16
X = np.arange(P * F, dtype=np.float32).reshape(P, F) + 1
ROW, COLUMN = np.arange(P)[:, None], np.arange(F)[None, :]


def axes():
    return nl.arange(P)[:, None], nl.arange(F)[None, :]


def masked(body):
    """Run `body(x, out, i, j)` with out = -1 everywhere, and give what is in out then."""

    @nki.jit
    def kernel(x):
        tile = nl.full((P, F), -1.0, dtype=nl.float32)
        body(nl.load(x), tile, *axes())
        out = nl.ndarray((P, F), dtype=nl.float32, buffer=nl.shared_hbm)
        nl.store(out, value=tile)
        return out

    return kernel(X)


MASKS = {
    "rows": lambda i, j: i < 5,
    "columns": lambda i, j: (j >= 3) & (j < 11),
    "a rectangle": lambda i, j: (i < 5) & (j > 4),
    "a triangle": lambda i, j: i >= j,
    "a triangle in a rectangle": lambda i, j: (i >= j) & (j < 4) & (i < 7),
    "either": lambda i, j: (i < 2) | (j < 3),
    "not": lambda i, j: ~(i >= 5),
    "a single element": lambda i, j: (i == 0) & (j == 9),
    "other than": lambda i, j: j != 7,
    "nothing": lambda i, j: j > 99,
    "everything": lambda i, j: j < 99,
}


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("name_first", [False, True], ids=["assigned", "named, then assigned"])
def test_elements_outside_the_mask_keep_their_value(mask, name_first):
    def body(x, out, i, j):
        if name_first:
            y = nl.multiply(x, 2.0, mask=mask(i, j))
            nl.copy(x)  # something else happens before the value is assigned
            out[i, j] = y
        else:
            out[i, j] = nl.multiply(x, 2.0, mask=mask(i, j))

    chosen = np.broadcast_to(mask(ROW, COLUMN), X.shape)
    np.testing.assert_array_equal(masked(body), np.where(chosen, 2 * X, -1))


def test_a_fresh_tile_is_undefined_outside_the_mask(evaluate):
    result = evaluate(lambda x: nl.exp(x * 0, mask=(axes()[0] < 3)), X)

    np.testing.assert_array_equal(np.isnan(result), np.broadcast_to(ROW >= 3, X.shape))


@pytest.mark.parametrize("mask", [True, False, np.bool_(True)], ids=repr)
def test_a_mask_on_loop_variables_is_a_truth_value(mask):
    def body(x, out, i, j):
        out[i, j] = nl.copy(x, mask=mask)

    np.testing.assert_array_equal(masked(body), X if mask else np.full_like(X, -1))


def test_a_masked_load_may_leave_the_tensor():
    @nki.jit
    def kernel(x):
        i, j = nl.arange(128)[:, None], nl.arange(F)[None, :]
        out = nl.ndarray((P, F), dtype=x.dtype, buffer=nl.shared_hbm)
        tile = nl.load(x[3 + i, j], mask=(3 + i < P))
        nl.store(out[3 + i, j], value=tile * 2, mask=(3 + i < P))
        nl.store(out[0:3, :], value=0)
        return out

    np.testing.assert_array_equal(kernel(X), np.where(ROW >= 3, 2 * X, 0))


def test_a_load_into_zeros_leaves_the_border_zero():
    def body(x, out, i, j):
        out[...] = 0
        out[i, j] = nl.copy(x[i, j], mask=(i < 4) & (j < 6))

    np.testing.assert_array_equal(masked(body), np.where((ROW < 4) & (COLUMN < 6), X, 0))


def test_a_masked_write_to_a_value_does_not_reach_what_was_assigned_from_it():
    def body(x, out, i, j):
        for _ in range(2):  # the second time, the rectangle of such a tile is known
            y = nl.multiply(x, 2.0)
            out[i, j] = y
            nisa.dma_copy(dst=y, src=x, mask=i < 5)

    np.testing.assert_array_equal(masked(body), 2 * X)


@pytest.mark.parametrize(
    ("op", "reference", "identity"),
    [(np.max, np.max, -np.inf), (np.add, np.sum, 0.0), (np.min, np.min, np.inf)],
    ids=["max", "add", "min"],
)
@pytest.mark.parametrize("name", ["columns", "a triangle", "a rectangle"])
def test_a_masked_reduction_counts_the_identity(op, reference, identity, name, evaluate):
    mask = MASKS[name]

    def reduced(x):
        return nisa.tensor_reduce(op, x, axis=[1], mask=mask(*axes()))

    chosen = np.broadcast_to(mask(ROW, COLUMN), X.shape)
    expected = reference(np.where(chosen, X.astype(np.float64), identity), axis=1, keepdims=True)
    result = evaluate(reduced, X)
    written = chosen.any(axis=1)
    np.testing.assert_array_equal(result[written], expected[written])
    assert np.isnan(result[~written]).all()


def test_a_masked_reduction_over_inner_axes_follows_its_own_axes(evaluate):
    x = np.arange(4 * 3 * 5, dtype=np.float32).reshape(4, 3, 5)

    def reduced(tile):
        i, a, b = nl.mgrid[0:4, 0:3, 0:5]
        return nl.sum(tile[i, a, b], axis=[1], mask=(a < 2) & (b < 4))

    result = evaluate(reduced, x)
    np.testing.assert_array_equal(result[:, :4], x[:, :2, :4].sum(1))


def test_a_mask_cuts_a_transpose_on_both_axes(evaluate):
    def body(x):
        out = nl.zeros((F, P), dtype=nl.float32, buffer=nl.psum)
        out[...] = nisa.nc_transpose(x, mask=(axes()[0] < 3) & (axes()[1] < 5))
        return nl.copy(out)

    np.testing.assert_array_equal(evaluate(body, X), np.where((ROW < 3) & (COLUMN < 5), X, 0).T)


REJECTED = {
    "another rank": (lambda x, out, i, j: nl.load(x[i, j], mask=(nl.arange(F) < 3)),
                     "does not fit a tile of shape"),
    "another tile": (lambda x, out, i, j: nl.load(x[i, j], mask=(nl.arange(3)[:, None] < 3)),
                     "does not fit a tile of shape"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "text"), REJECTED.values(), ids=REJECTED)
def test_a_mask_that_cannot_be_honoured_is_rejected(body, text):
    @nki.jit
    def kernel(x):
        out = nl.ndarray((P, F), dtype=x.dtype, buffer=nl.shared_hbm)
        body(x, out, *axes())
        return out

    with pytest.raises(ShapeError, match=text):
        kernel(X)


def test_an_access_out_of_range_needs_its_mask_everywhere():
    @nki.jit
    def kernel(x):
        i, j = nl.arange(128)[:, None], nl.arange(F)[None, :]
        return nl.load(x[i, j])

    with pytest.raises(AccessError, match="index out of range in dimension 0") as caught:
        kernel(X)

    assert "mask=" in str(caught.value)
