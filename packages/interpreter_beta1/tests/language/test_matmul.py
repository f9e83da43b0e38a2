"""nisa.nc_matmul of 0.1: what it takes beyond its documented signature."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import ml_dtypes
import numpy as np
import pytest

from neuroncore.errors import MemorySpaceError
from neuroncore.machine.backend import CURRENT, Choice
from neuroncore.options import Options
from nki_beta1 import nisa


@contextmanager
def chosen(options: Options) -> Iterator[None]:
    token = CURRENT.set(Choice("beta1", "0.1", "trn2", options))
    try:
        yield
    finally:
        CURRENT.reset(token)


def test_a_matmul_reads_psum_only_where_the_options_put_a_copy_in(evaluate, rng):
    x = rng.standard_normal((8, 8)).astype(np.float32)

    def product(t):
        return nisa.nc_matmul(nisa.nc_transpose(t), t)

    with pytest.raises(MemorySpaceError, match="stationary is in PSUM"):
        evaluate(product, x)
    with chosen(Options(matmul_reads_psum="copy")):
        result = evaluate(product, x)

    exact = x.astype(np.float64) @ x.astype(np.float64)
    np.testing.assert_allclose(result, exact, atol=8 * 16 * 2.0**-24)  # 8 sums below 16


def test_a_vendor_kernel_names_the_double_row_mode(evaluate):
    """Two rows of a partition are two steps of the contraction."""
    left = np.arange(12).reshape(2, 2, 3).astype(ml_dtypes.float8_e4m3)
    right = np.arange(16).reshape(2, 2, 4).astype(ml_dtypes.float8_e4m3)

    def product(s, m):
        return nisa.nc_matmul(s, m, perf_mode="double_row_gen3")

    exact = np.einsum("ktm,ktn->mn", left.astype(np.float64), right.astype(np.float64))
    np.testing.assert_array_equal(evaluate(product, left, right), exact)
