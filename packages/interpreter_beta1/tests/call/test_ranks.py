"""Tiles of different ranks: sums and assignments with as many elements, columns, wide views."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import MemorySpace
from neuroncore.errors import ShapeError, SignatureError
from nki_beta1 import nisa, nl


def integers(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 11 - 5


def test_a_product_is_added_to_a_sum_of_a_higher_rank(evaluate):
    left, right = integers(16, 8), integers(16, 24)

    def summed(a, b):
        total = nl.zeros((8, 2, 3, 4), dtype=nl.float32, buffer=nl.psum)
        for _ in nl.affine_range(2):
            total += nisa.nc_matmul(a, b)
        return total

    exact = 2 * (left.astype(np.float64).T @ right.astype(np.float64))
    np.testing.assert_array_equal(evaluate(summed, left, right), exact.reshape(8, 2, 3, 4))


@pytest.mark.parametrize("buffer", [nl.sbuf, nl.psum], ids=MemorySpace.__str__)
def test_an_update_takes_a_tile_of_another_rank(evaluate, buffer):
    tile, other = integers(8, 2, 12), integers(8, 24)

    def updated(a, b):
        total = nl.ndarray((8, 2, 12), dtype=nl.float32, buffer=buffer)
        total[...] = a
        total += b
        total *= b
        total -= b.reshape((8, 24, 1, 1))
        return total

    flat = other.reshape(8, 2, 12).astype(np.float64)
    exact = (tile + flat) * flat - flat
    np.testing.assert_array_equal(evaluate(updated, tile, other), exact)


def test_elements_that_are_not_in_order_are_copied(evaluate):
    """A part of rows of a tile has no strides of a lower rank."""
    tile, other = integers(8, 2, 16), integers(8, 24)

    def updated(a, b):
        total = nl.copy(b)
        kept = nl.ndarray((8, 24), dtype=nl.float32, buffer=nl.sbuf)
        kept[...] = total
        kept += a[:, :, 2:14]
        return kept

    exact = other + tile[:, :, 2:14].reshape(8, 24)
    np.testing.assert_array_equal(evaluate(updated, tile, other), exact)


def test_a_tile_is_assigned_to_one_of_another_rank(evaluate):
    other = integers(8, 24)

    def assigned(b):
        kept = nl.ndarray((8, 2, 3, 4), dtype=nl.float32, buffer=nl.sbuf)
        kept[...] = b
        return kept

    np.testing.assert_array_equal(evaluate(assigned, other), other.reshape(8, 2, 3, 4))


@pytest.mark.parametrize("shape", [(8, 23), (4, 48)], ids=str)
def test_other_sizes_do_not_fit(evaluate, shape):
    def updated(a, b):
        total = nl.zeros((8, 2, 12), dtype=nl.float32, buffer=nl.sbuf)
        total += b
        return total

    with pytest.raises(ShapeError):
        evaluate(updated, integers(8, 2, 12), integers(*shape))


@pytest.mark.parametrize("is_first", [True, False])
def test_tensor_tensor_repeats_a_column_along_free_axes_of_any_rank(evaluate, is_first):
    tile, column = integers(8, 2, 12), integers(8, 3)

    def difference(a, b):
        pair = (b[:, 1:2], a) if is_first else (a, b[:, 1:2])
        return nisa.tensor_tensor(*pair, op=nl.subtract)

    exact = (column[:, 1, None, None] - tile) * (1 if is_first else -1)
    np.testing.assert_array_equal(evaluate(difference, tile, column), exact)


REDUCTIONS = {
    "maximum": (nl.max, lambda x: x.max((2, 4))),
    "add": (np.add, lambda x: x.sum((2, 4))),
    "subtract": (np.subtract, lambda x: 2 * x[:, :, :1, :, :1].sum((2, 4)) - x.sum((2, 4))),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_tensor_reduce_takes_free_axes_with_others_between_them(evaluate, name):
    tile = integers(8, 6, 8)
    op, exact = REDUCTIONS[name]

    def reduced(a):
        return nisa.tensor_reduce(op, a.reshape((8, 3, 2, 4, 2)), axis=[2, 4])

    wide = tile.reshape(8, 3, 2, 4, 2).astype(np.float64)
    np.testing.assert_array_equal(evaluate(reduced, tile), exact(wide))


def test_such_a_reduction_has_its_options_and_mask(evaluate):
    tile = integers(8, 6, 8)

    def reduced(a):
        _, rows, _ = nl.mgrid[0:8, 0:6, 0:8]
        mask = rows < 5
        return nisa.tensor_reduce(np.add, a, axis=-2, mask=mask, negate=True, keepdims=True)

    exact = -tile[:, :5].astype(np.float64).sum(1, keepdims=True)
    np.testing.assert_array_equal(evaluate(reduced, tile), exact)


def test_a_view_of_six_dimensions_is_reduced(evaluate):
    tile = integers(8, 6, 8)

    def reduced(a):
        return nisa.tensor_reduce(np.max, a.reshape((8, 1, 3, 2, 4, 2)), axis=[3, 5])

    exact = tile.reshape(8, 1, 3, 2, 4, 2).max((3, 5))
    np.testing.assert_array_equal(evaluate(reduced, tile), exact)


def test_memset_explains_that_it_takes_a_number(evaluate):
    with pytest.raises(SignatureError, match="value is a tile") as error:
        evaluate(lambda a: nisa.memset((8, 4), value=a + a, dtype=nl.float32), integers(1, 1))

    assert "broadcast_to" in str(error.value)
