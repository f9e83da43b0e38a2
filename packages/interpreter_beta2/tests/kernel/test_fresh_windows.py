"""New memory that a kernel names by its whole window: filled with NaN only where it is read."""

from __future__ import annotations

import numpy as np
import pytest

X = np.arange(4 * 6, dtype=np.float32).reshape(4, 6)
WHOLE = {
    "slices": lambda t: t[0:4, 0:6],
    "open": lambda t: t[:, :],
    "mixed": lambda t: t[0:, :6],
    "dots": lambda t: t[...],
}
PARTS = {
    "rows": lambda t: t[0:3, 0:6],
    "columns": lambda t: t[0:4, 1:6],
    "step": lambda t: t[0:4, 0:6:5],
    "index": lambda t: t[0:4, 0],
    "first": lambda t: t[0:4],
}


@pytest.fixture
def new(every):
    """A new tile of (4, 6), in a kernel."""
    return lambda: every.nl.ndarray((4, 6), dtype=every.nl.float32, buffer=every.nl.sbuf)


@pytest.mark.parametrize("name", WHOLE)
def test_the_whole_window_of_new_memory_is_not_filled_before_it_is_written(every, new, name):
    def kernel(x):
        tile = new()
        every.nisa.dma_copy(dst=WHOLE[name](tile), src=x)
        return every.out(tile), every.out(WHOLE[name](tile))

    for result in every.run(kernel, X):
        np.testing.assert_array_equal(result, X)
    assert every.inside(lambda: WHOLE[name](new()).storage.fresh)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_new_memory_fills_it(every, new, name):
    assert not every.inside(lambda: PARTS[name](new()).storage.fresh)


@pytest.mark.parametrize("name", WHOLE)
def test_a_read_of_the_whole_window_of_new_memory_reads_nan(every, new, name):
    assert np.isnan(every.run(lambda x: every.out(WHOLE[name](new())), X)).all()


@pytest.mark.parametrize("name", WHOLE)
def test_a_window_from_before_the_first_write_keeps_what_was_written(every, new, name):
    def kernel(x):
        tile = new()
        early = WHOLE[name](tile)
        every.nisa.dma_copy(dst=tile, src=x)
        every.nisa.memset(dst=early[0:4, 0:1], value=-1.0)
        every.nisa.tensor_scalar(dst=early, data=early, op0=every.nl.add, operand0=1.0)
        return every.out(early)

    expected = X + 1
    expected[:, 0] = 0
    np.testing.assert_array_equal(every.run(kernel, X), expected)


def test_products_into_the_whole_window_of_new_psum_start_a_sum(every):
    def kernel(x):
        a = every.tile(x)
        psum = every.nl.ndarray((6, 6), dtype=every.nl.float32, buffer=every.nl.psum)
        early = psum[0:6, 0:6]
        for _ in range(3):
            every.nisa.nc_matmul(dst=psum[0:6, 0:6], stationary=a, moving=a)
        every.nisa.nc_matmul(dst=early, stationary=a, moving=a)
        tile = every.nl.ndarray((6, 6), dtype=every.nl.float32, buffer=every.nl.sbuf)
        every.nisa.tensor_copy(dst=tile[:, :], src=psum[:, :])
        return every.out(tile)

    np.testing.assert_array_equal(every.run(kernel, X), 4 * X.T @ X)
