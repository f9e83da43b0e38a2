"""Windows, shifts by half an axis, powers and norms of matrices, as NumPy has them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view


@pytest.mark.parametrize(
    ("spans", "axis"), [(1, 0), (3, -1), ((2, 3), None), ((3, 2), (1, 0)), ((2, 2), (1, 1))]
)
def test_windows(agree, normal, spans, axis):
    agree(lambda x: sliding_window_view(x, spans, axis), normal(4, 6))
    agree(lambda x: sliding_window_view(x, spans, axis).max(-1), normal(4, 6))


@pytest.mark.parametrize(("spans", "axis"), [(7, 1), ((2, 2), 0), (2, None), (5, 0)])
def test_windows_that_numpy_rejects(agree, normal, spans, axis):
    agree(lambda x: sliding_window_view(x, spans, axis), normal(4, 6))


@pytest.mark.parametrize("axes", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("shape", [(4, 6), (5, 7), (1, 3)])
def test_shifts_by_half_an_axis(agree, normal, shape, axes):
    agree(lambda x: np.fft.fftshift(x, axes), normal(*shape))
    agree(lambda x: np.fft.ifftshift(np.fft.fftshift(x, axes), axes), normal(*shape))


@pytest.mark.parametrize("power", [0, 1, 2, 5, 8])
def test_powers_of_matrices(agree, normal, power):
    agree(lambda x: np.linalg.matrix_power(x, power), normal(2, 3, 3) * np.float32(0.5), ulps=64)


@pytest.mark.parametrize("ord", ["fro", 1, -1, np.inf, -np.inf])
def test_norms_of_matrices(agree, normal, ord):
    agree(lambda x: np.linalg.matrix_norm(x, ord=ord), normal(2, 3, 4))


def test_partition_in_place(agree, normal):
    def smallest(x):
        y = x.copy()
        y.partition(2, axis=0)
        return y[2]

    agree(smallest, normal(7, 3))
    agree(lambda x: np.partition(x, 9), normal(7, 3))
