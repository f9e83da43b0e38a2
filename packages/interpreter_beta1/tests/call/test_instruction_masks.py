"""Masks on instructions that work with patterns or that sum as they go."""

import numpy as np
import pytest

from neuroncore.errors import ShapeError
from nki_beta1 import nisa, nki, nl

P, F = 40, 9
MASKS = {
    "rows": (lambda i, j: i < 4, np.s_[:4, :]),
    "columns": (lambda i, j: (j >= 2) & (j < 7), np.s_[:, 2:7]),
    "a corner": (lambda i, j: (i >= 32) & (j >= 5), np.s_[32:, 5:]),
    "nothing": (lambda i, j: i < 0, np.s_[:0, :]),
}


def over_fives(make):
    """What `make(i, j)` writes over a tile of fives."""

    @nki.jit
    def kernel():
        out = nl.ndarray((P, F), dtype=nl.float32, buffer=nl.shared_hbm)
        tile = nl.full((P, F), 5, dtype=nl.float32)
        i, j = nl.arange(P)[:, None], nl.arange(F)[None, :]
        tile[i, j] = make(i, j)
        nl.store(out, value=tile)
        return out

    return kernel()


def expected(values, part):
    found = np.full((P, F), 5, np.float32)
    found[part] = values[part]
    return found


ROWS, COLUMNS = np.mgrid[0:P, 0:F]


@pytest.mark.parametrize("name", MASKS)
def test_iota_writes_what_the_mask_selects(name):
    mask, part = MASKS[name]
    result = over_fives(lambda i, j: nisa.iota(20 * i + 3 * j + 1, nl.float32, mask=mask(i, j)))

    np.testing.assert_array_equal(result, expected(20 * ROWS + 3 * COLUMNS + 1, part))


@pytest.mark.parametrize("name", MASKS)
def test_affine_select_compares_where_the_mask_selects(name):
    mask, part = MASKS[name]

    def make(i, j):
        ones = nl.full((P, F), 1, dtype=nl.float32)
        return nisa.affine_select(i >= j, ones, -2.0, mask=mask(i, j))

    np.testing.assert_array_equal(
        over_fives(make), expected(np.where(ROWS >= COLUMNS, 1, -2), part)
    )


def test_a_triangle_of_an_iota_is_written():
    result = over_fives(lambda i, j: nisa.iota(i + j, nl.float32, mask=i >= j))

    np.testing.assert_array_equal(result, np.where(ROWS >= COLUMNS, ROWS + COLUMNS, 5))


@pytest.mark.parametrize("name", MASKS)
def test_an_activation_sums_what_the_mask_selects(name, rng):
    mask, part = MASKS[name]
    x = rng.integers(-9, 9, (P, F)).astype(np.float32)

    @nki.jit
    def kernel(x):
        out = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.shared_hbm)
        i, j = nl.arange(P)[:, None], nl.arange(F)[None, :]
        sums = nl.full((P, 1), 5, dtype=nl.float32)
        nisa.activation(nl.square, nl.load(x), reduce_op=np.add, reduce_res=sums,
                        reduce_cmd=nisa.reduce_cmd.reset_reduce, mask=mask(i, j))  # fmt: skip
        nl.store(out, value=sums)
        return out

    sums = np.full((P, 1), 5, np.float32)
    sums[part[0]] = (x[part] ** 2).sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(kernel(x), sums)


def test_a_sum_over_a_triangle_is_rejected():
    def make(i, j):
        data, sums = nl.full((P, F), 1, dtype=nl.float32), nl.zeros((P, 1), dtype=nl.float32)
        return nisa.activation(nl.square, data, reduce_op=np.add, reduce_res=sums,
                               reduce_cmd=nisa.reduce_cmd.reset_reduce, mask=i >= j)  # fmt: skip

    with pytest.raises(ShapeError, match="activation: the mask does not select a rectangle"):
        over_fives(make)
