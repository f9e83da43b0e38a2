"""What is remembered about index expressions and accesses gives what working it out gives."""

import itertools
import operator

import numpy as np
import pytest

from nki_beta1 import nki, nl
from nki_beta1.index.mask import region_of
from nki_beta1.index.pattern import pattern

COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@pytest.mark.parametrize("sign", COMPARISONS)
def test_a_mask_selects_what_the_comparison_of_integers_says(sign):
    rows, columns = np.arange(5)[:, None], np.arange(4)[None, :]
    index_rows, index_columns = nl.arange(5)[:, None], nl.arange(4)[None, :]
    compare = COMPARISONS[sign]

    for step, other, bound in itertools.product((-3, -1, 0, 1, 2), (0, 1), range(-9, 10)):
        expected = np.zeros((5, 4), bool)
        expected |= compare(step * rows + other * columns, bound)
        region = region_of(compare(step * index_rows + other * index_columns, bound), (5, 4))
        selected = np.ones((5, 4), bool)
        if region is not None:
            selected[...] = False
            selected[region.rect] = True if region.inside is None else region.inside
        assert (selected == expected).all(), (step, other, bound)


def test_bounds_on_both_axes_are_a_rectangle_without_an_array():
    mask = (nl.arange(128)[:, None] < 44) & (3 - nl.arange(512)[None, :] <= 0)

    region = region_of(mask, (128, 512))

    assert region.rect == (slice(0, 44), slice(3, 512)) and region.inside is None  # pyrefly: ignore


def test_equal_patterns_are_one_object_and_know_their_bounds():
    ragged = nl.arange(128)[:, None] * 3 - nl.arange(512)[None, :] + 7

    assert ragged.pattern is pattern((128, 512), (3, -1))
    assert ragged.bounds == (7 - 511, 7 + 3 * 127)


def test_an_access_to_all_of_a_tile_reads_undefined_elements_as_nan():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((3, 4, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        rows, columns = nl.mgrid[0:4, 0:6]
        for n in nl.affine_range(3):  # the first access is worked out, the others remembered
            tile = nl.ndarray((4, 6), dtype=x.dtype, buffer=nl.sbuf)
            nl.store(out[n, rows, columns], tile[rows, columns])
        return out

    assert np.isnan(kernel(np.zeros((4, 6), np.float32))).all()


def test_part_of_a_tile_written_after_an_access_to_all_of_it_leaves_the_rest_undefined():
    @nki.jit
    def kernel(x):
        out = nl.ndarray((3, 4, 6), dtype=x.dtype, buffer=nl.shared_hbm)
        rows, columns = nl.mgrid[0:4, 0:6]
        for n in nl.affine_range(3):
            tile = nl.ndarray((4, 6), dtype=x.dtype, buffer=nl.sbuf)
            tile[rows, columns] = nl.load(x[rows, columns], mask=columns < 4)
            nl.store(out[n, rows, columns], tile[rows, columns])
        return out

    result = kernel(np.ones((4, 6), np.float32))

    assert (result[:, :, :4] == 1).all() and np.isnan(result[:, :, 4:]).all()


def test_ragged_tiles_of_a_known_form_are_checked_on_every_call():
    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
        for row, column in itertools.product(range(0, 10, 4), range(0, 13, 5)):
            i, j = row + nl.arange(4)[:, None], column + nl.arange(5)[None, :]
            inside = (i < 10) & (j < 13)
            nl.store(out[i, j], nl.load(x[i, j], mask=inside), mask=inside)
        return out

    x = np.arange(130, dtype=np.float32).reshape(10, 13)

    assert (kernel(x) == x).all()
