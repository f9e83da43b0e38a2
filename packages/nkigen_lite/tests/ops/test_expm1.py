"""expm1 within the bound of its record: in the graph that is lowered, and in the kernel."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite import compile
from nkigen_lite.ops import OPS
from nkigen_lite.tensors.ulps import difference


def _around_zero(dtype: type) -> np.ndarray:
    sizes = np.geomspace(2.0**-30, 10, 255)
    return np.concatenate([[0.0, -0.0], -sizes, sizes]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16])
def test_graph_and_kernel_are_within_the_bound(dtype):
    x = _around_zero(dtype)
    bound = OPS["expm1"].error
    assert bound is not None
    kernel = compile(np.expm1, x)

    exact = np.expm1(x.astype(np.float64))
    at_most = bound.float32 if dtype is np.float32 else bound.narrow
    for ours in (kernel.passes["decomposed"].run(x), kernel(x)):
        ulps = difference(ours, exact).ulps
        assert ulps is not None and ulps <= at_most


def test_the_ends_of_the_range_and_nan_are_numpys():
    x = np.array([-np.inf, -200, 100, np.inf, np.nan], np.float32)

    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(compile(np.expm1, x)(x), np.expm1(x))
