"""`+=` of products into PSUM: a sum starts where nothing has written, wherever the rest stands."""

import ml_dtypes
import numpy as np
import pytest

from neuroncore.machine.backend import Choice
from neuroncore.machine.observe import Watcher, watched_by
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


def masked_in_part(t):
    ps, (i, j) = psum(N, N), nl.mgrid[0:N, 0:N]
    ps[i, j] += nisa.nc_matmul(t[0:5], t[0:5], mask=i < 6)
    ps += nisa.nc_matmul(t, t)
    return ps


def one_number():
    return nl.full((1, 1), 4, dtype=nl.int32)


def masked_in_part_of_a_block(t):
    ps, (i, j) = psum(2, nl.par_dim(N), N), nl.mgrid[0:N, 0:N]
    ps[0, i, j] += nisa.nc_matmul(t[0:5], t[0:5], mask=i < 6)
    ps[0] += nisa.nc_matmul(t, t)
    return ps[0]


def moved_to_the_other_half(t):
    ps, (i, j) = psum(N, 2, N), nl.mgrid[0:N, 0:4]
    nisa.tensor_copy_dynamic_dst(dst=ps[i, 0, one_number()[0, 0] + j], src=t[:, 4:8])
    ps[:, 0, 0:4] = t[:, 0:4]
    ps[:, 1, :] += nisa.nc_matmul(t, t)
    return ps


def moved_beside_zeros(t):
    ps, (i, j) = psum(N, N), nl.mgrid[0:N, 0:4]
    ps[:, 0:1] = 0.0
    ps[i, one_number()[0, 0] + j] += nisa.nc_matmul(t, t[:, 4:8])
    ps[:, 0:4] += nisa.nc_matmul(t, t[:, 0:4])
    return ps


def moved_with_a_name(t):
    ps, (i, j) = psum(N, N), nl.mgrid[0:N, 0:4]
    product = nisa.nc_matmul(t, t[:, 4:8])
    nl.add(t, t)
    ps[i, one_number()[0, 0] + j] += product
    ps += nisa.nc_matmul(t, t)
    return ps


def moved_under_a_mask(t):
    ps, (i, j) = psum(N, N), nl.mgrid[0:N, 0:4]
    ps[i, one_number()[0, 0] + j] = nl.copy(t[:, 4:8], mask=i >= j)
    ps += nisa.nc_matmul(t, t)
    return ps


def scattered_products(t):
    ps, (i, j) = psum(N, N), nl.mgrid[0:N, 0:N]
    for _ in nl.sequential_range(2):
        ps[i, (j * 3) % N] += nisa.nc_matmul(t, t)
    return ps


def scattered_with_a_name(t):
    ps, (i, j) = psum(N, N), nl.mgrid[0:N, 0:N]
    product = nisa.nc_matmul(t, t)
    nl.add(t, t)
    ps[i, (j * 3) % N] += product
    ps += nisa.nc_matmul(t, t)
    return ps


def scattered_under_a_mask(t):
    ps, (i, j) = psum(N, N), nl.mgrid[0:N, 0:N]
    ps[i, (j * 3) % N] += nisa.nc_matmul(t[0:5], t[0:5], mask=i < 6)
    ps += nisa.nc_matmul(t, t)
    return ps


def of_gathered_products(t):
    ps, product, (i, j) = psum(N, N), psum(N, N), nl.mgrid[0:N, 0:N]
    product[...] = nisa.nc_matmul(t, t)
    ps += product[i, (j * 3) % N]
    return ps


def beside_halves_of_elements(t):
    ps = psum(N, 2, N)
    ps[:, 0, :].view(nl.bfloat16)[...] = 0.0
    ps[:, 1, :] += nisa.nc_matmul(t, t)
    ps[:, 0, :] += nisa.nc_matmul(t, t)
    return ps


def into_halves_of_elements(t):
    ps = psum(N, N)
    halves = ps.view(nl.bfloat16)
    halves[:, 0:N] = 0.0
    halves[:, 0:N] += nisa.nc_matmul(t, t)
    halves[:, N : 2 * N] += nisa.nc_matmul(t, t)
    return halves


def predicated(t):
    ps = psum(N, N)
    chosen = nl.copy(nl.greater(t, 4.0), dtype=nl.uint8)
    nisa.tensor_copy_predicated(src=t, dst=ps, predicate=chosen)
    ps += nisa.nc_matmul(t, t)
    return ps


def of_sums_of_products(t):
    ps, products, product = psum(N, N), psum(N, N), nisa.nc_matmul(t, t)
    nl.add(t, t)
    products += product
    ps += products
    return ps


def beside(array, part=np.s_[:], by=0.0):
    found = array.copy()
    found[part] += by
    return found


FIRST = X[:5].T @ X[:5]
PERMUTED = np.arange(N) * 3 % N  # its own inverse: 3 * 3 is 1 modulo 8
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
    masked_in_part: beside(PRODUCT, np.s_[:6], FIRST[:6]),
    masked_in_part_of_a_block: beside(PRODUCT, np.s_[:6], FIRST[:6]),
    moved_to_the_other_half: np.stack([X, PRODUCT], 1),
    moved_beside_zeros: PRODUCT,
    moved_with_a_name: beside(PRODUCT, np.s_[:, 4:], PRODUCT[:, 4:]),
    moved_under_a_mask: beside(PRODUCT, np.s_[:, 4:], X[:, 4:] * LOW[:, :4]),
    scattered_products: 2 * PRODUCT[:, PERMUTED],
    scattered_with_a_name: PRODUCT + PRODUCT[:, PERMUTED],
    scattered_under_a_mask: beside(PRODUCT, np.s_[:6], FIRST[:6, PERMUTED]),
    of_gathered_products: PRODUCT[:, PERMUTED],
    beside_halves_of_elements: np.stack([PRODUCT, PRODUCT], 1),
    into_halves_of_elements: np.tile(PRODUCT.astype(ml_dtypes.bfloat16).astype(np.float32), 2),
    predicated: PRODUCT + np.where(X > 4, X, 0),
    of_sums_of_products: PRODUCT,
    a_value: beside(PRODUCT, np.s_[:4], PRODUCT[:4]),
}
OPTIONS = {"default": Options(), "checked": Options(activation_range="reject")}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("sums", SUMS, ids=lambda f: f.__name__)
def test_a_sum_starts_where_nothing_has_been_written(sums, options):
    @nki.jit
    def kernel(x):
        return stored(nl.copy(sums(nl.load(x)), dtype=nl.float32))

    run = BACKEND.simulate(kernel, Choice("beta1", "0.1", options=options))
    for _ in range(2):
        np.testing.assert_array_equal(run(X), SUMS[sums])
    with watched_by(Watcher()):
        np.testing.assert_array_equal(run(X), SUMS[sums])


@pytest.mark.parametrize("was_product", [False, True])
def test_what_is_no_product_starts_no_sum(was_product):
    @nki.jit
    def kernel(x):
        ps, other = psum(N, N), psum(N, N)
        if was_product:
            other[...] = nisa.nc_matmul(nl.load(x), nl.load(x))
        other[...] = nl.load(x)
        ps += other
        return stored(nl.copy(ps))

    assert np.isnan(kernel(X)).all()
