"""Masks on nc_matmul and nl.matmul: extents say whose axes a bound is about."""

import numpy as np
import pytest

from neuroncore.errors import AttributeValueError, ShapeError
from nki_beta1 import nisa, nki, nl

K, M, N = 6, 5, 8


@pytest.fixture
def a(rng):
    return rng.integers(-9, 9, (K, M)).astype(np.float32)


@pytest.fixture
def b(rng):
    return rng.integers(-9, 9, (K, N)).astype(np.float32)


def product(a, b, mask, function=nisa.nc_matmul):
    """The masked product over a PSUM tile of 100s."""

    @nki.jit
    def kernel(a, b):
        out = nl.ndarray((a.shape[1], b.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
        acc = nl.full((a.shape[1], b.shape[1]), 100, dtype=nl.float32, buffer=nl.psum)
        acc[...] = function(nl.load(a), nl.load(b), mask=mask())
        nl.store(out, value=nl.copy(acc))
        return out

    return kernel(a, b)


def rows(count):
    return nl.arange(count)[:, None]


def columns(count):
    return nl.arange(count)[None, :]


def test_a_bound_on_the_contraction_sums_fewer_products(a, b):
    np.testing.assert_array_equal(product(a, b, lambda: rows(K) < 4), a[:4].T @ b[:4])


def test_a_bound_on_the_columns_writes_fewer_columns(a, b):
    expected = np.full((M, N), 100, np.float32)
    expected[:, :3] = a.T @ b[:, :3]

    np.testing.assert_array_equal(product(a, b, lambda: columns(N) < 3), expected)


@pytest.mark.parametrize("bound", [lambda: rows(M) < 2, lambda: columns(M) < 2],
                         ids=["rows of the result", "columns of stationary"])  # fmt: skip
def test_a_bound_on_stationary_writes_fewer_rows(bound, a, b):
    expected = np.full((M, N), 100, np.float32)
    expected[:2] = a[:, :2].T @ b

    np.testing.assert_array_equal(product(a, b, bound), expected)


def test_bounds_combine(a, b):
    expected = np.full((M, N), 100, np.float32)
    expected[:, 1:3] = a[:4].T @ b[:4, 1:3]

    def mask():
        return (rows(K) < 4) & (columns(N) < 3) & (columns(N) >= 1)

    np.testing.assert_array_equal(product(a, b, mask), expected)


@pytest.mark.parametrize("truth", [True, np.True_, None])
def test_what_always_holds_changes_nothing(truth, a, b):
    np.testing.assert_array_equal(product(a, b, lambda: truth), a.T @ b)
    np.testing.assert_array_equal(product(a, b, lambda: rows(K) < K), a.T @ b)


@pytest.mark.parametrize("nothing", [lambda: False, lambda: rows(K) < 0, lambda: columns(N) >= N])
def test_what_never_holds_writes_nothing(nothing, a, b):
    assert (product(a, b, nothing) == 100).all()


def test_nl_matmul_takes_the_same_masks(a, b):
    def transposed(x, y, mask):
        return nl.matmul(x, y, transpose_x=True, mask=mask)

    np.testing.assert_array_equal(product(a, b, lambda: rows(K) < 4, transposed), a[:4].T @ b[:4])


def test_equal_extents_are_ambiguous(a):
    with pytest.raises(AttributeValueError, match="5 columns may refer to the operands or"):
        product(a, a, lambda: columns(M) < 2)
    with pytest.raises(AttributeValueError, match="5 rows may refer to the operands or"):
        product(a[:5], a[:5], lambda: rows(5) < 2)


def test_axes_of_nothing_and_triangles_are_rejected(a, b):
    with pytest.raises(ShapeError, match="of extent 7 fits neither operands nor result"):
        product(a, b, lambda: rows(7) < 2)
    with pytest.raises(ShapeError, match="does not select a rectangle"):
        product(a, b, lambda: rows(K) < columns(N))
