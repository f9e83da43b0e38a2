"""`+=` of products into PSUM: a sum starts where nothing has written, wherever the rest stands."""

import numpy as np
import pytest

from neuroncore.backend import Choice
from neuroncore.observe import Watcher, watched_by
from neuroncore.options import Options
from nki_beta1 import BACKEND, nisa, nki, nl

N = 8
X = np.arange(N * N, dtype=np.float32).reshape(N, N) / 8
PRODUCT = X.T @ X


def stored(tile):
    out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=tile)
    return out


def psum(*shape):
    return nl.ndarray(shape, dtype=nl.float32, buffer=nl.psum)


def a_part_of_zeros(t):
    ps = psum(N, 2, N)
    ps[:, 0, :] = 0.0
    ps[:, 0, :] += nisa.nc_matmul(t, t)
    ps[:, 1, :] += nisa.nc_matmul(t, t)
    return ps


def a_part_of_ones(t):
    ps = psum(N, 2, N)
    ps[:, 0, :] = 1.0
    for b in nl.static_range(2):
        for _ in nl.sequential_range(2):
            ps[:, b, :] += nisa.nc_matmul(t, t)
    return ps


def a_second_output(t):
    ps = psum(N, N)
    nisa.activation_reduce(np.copy, t, reduce_op=np.add, reduce_res=ps[:, 0:1])
    ps[:, 1:N] += nisa.nc_matmul(t, t[:, 1:N])
    return ps


def rows_under_a_mask(t):
    ps, (i, j) = psum(N, N), nl.mgrid[0:N, 0:N]
    ps[i, j] = nl.copy(t, mask=i < 4)
    ps += nisa.nc_matmul(t, t)
    return ps


def elements_under_a_mask(t):
    ps, (i, j) = psum(N, N), nl.mgrid[0:N, 0:N]
    ps[i, j] = nl.copy(t, mask=i >= j)
    ps += nisa.nc_matmul(t, t)
    ps += nisa.nc_matmul(t, t)
    return ps


def scattered(t):
    ps, (i, j) = psum(N, N), nl.mgrid[0:N, 0:4]
    ps[i, (j * 3) % N] = t[:, 0:4]
    ps += nisa.nc_matmul(t, t)
    return ps


def a_product_with_a_name(t):
    ps = psum(N, N)
    product = nisa.nc_matmul(t, t)
    nl.add(t, t)
    ps += product
    ps += product
    return ps


def two_products(t):
    ps = psum(N, N)
    first, second = nisa.nc_matmul(t, t), nisa.nc_matmul(t, t)
    ps += first
    ps += second
    return ps


def a_product_that_was_assigned(t):
    ps, other = psum(N, N), psum(N, N)
    product = nisa.nc_matmul(t, t)
    other[...] = product
    ps += product
    other[...] = 0.0
    ps += product
    return ps


def a_value(t):
    other = psum(N, N)
    product = nisa.nc_matmul(t, t)
    other[...] = product
    product[0:4, :] += nisa.nc_matmul(t[:, 0:4], t)
    return product


def beside(array, part=np.s_[:], by=0.0):
    found = array.copy()
    found[part] += by
    return found


LOW = np.tril(np.ones((N, N), bool))
SPREAD = np.zeros((N, N), np.float32)
SPREAD[:, (np.arange(4) * 3) % N] = X[:, :4]
SUMS = {
    a_part_of_zeros: np.stack([PRODUCT, PRODUCT], 1),
    a_part_of_ones: np.stack([2 * PRODUCT + 1, 2 * PRODUCT], 1),
    a_second_output: np.concatenate([X.sum(1, keepdims=True), PRODUCT[:, 1:]], 1),
    rows_under_a_mask: beside(PRODUCT, np.s_[:4], X[:4]),
    elements_under_a_mask: 2 * PRODUCT + X * LOW,
    scattered: PRODUCT + SPREAD,
    a_product_with_a_name: 2 * PRODUCT,
    two_products: 2 * PRODUCT,
    a_product_that_was_assigned: 2 * PRODUCT,
    a_value: beside(PRODUCT, np.s_[:4], PRODUCT[:4]),
}
OPTIONS = {"default": Options(), "checked": Options(activation_range="refuse")}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("sums", SUMS, ids=lambda f: f.__name__)
def test_a_sum_starts_where_nothing_has_been_written(sums, options):
    @nki.jit
    def kernel(x):
        return stored(nl.copy(sums(nl.load(x))))

    run = BACKEND.simulate(kernel, Choice("beta1", "0.1", options=options))
    for _ in range(2):
        np.testing.assert_array_equal(run(X), SUMS[sums])
    with watched_by(Watcher()):
        np.testing.assert_array_equal(run(X), SUMS[sums])


def test_what_is_no_product_starts_no_sum():
    @nki.jit
    def kernel(x):
        ps, other = psum(N, N), psum(N, N)
        other[...] = nl.load(x)
        ps += other
        return stored(nl.copy(ps))

    assert np.isnan(kernel(X)).all()
