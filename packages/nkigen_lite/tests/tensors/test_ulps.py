"""Ulps are of the format, at the element."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite.tensors.ulps import difference, ulp


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("value", [1.0, 1.5, 2.0, 0.75, 1000.0, 1e-3, -3.0])
def test_an_ulp_is_the_distance_to_the_next_number(dtype, value):
    one = dtype(value)

    assert ulp(float(one), dtype) == abs(
        float(np.nextafter(one, dtype(np.copysign(np.inf, one)))) - float(one)
    )


def test_ulps_of_subnormals_are_all_the_same():
    assert ulp([0.0, 1e-45, 1e-39], np.float32).tolist() == [2.0**-149] * 3


def test_ulps_of_bfloat16():
    assert ulp([1.0, 256.0], ml_dtypes.bfloat16).tolist() == [2.0**-7, 2.0]


def test_differences_count_ulps_of_the_element_and_of_the_largest():
    found = difference(np.array([1024.0, 1.0 + 2**-20], np.float32), np.array([1024.0, 1.0]))

    assert (found.largest, found.at) == (2.0**-20, (1,))
    assert (found.ulps, found.ulps_of_largest) == (8.0, 2.0**-7)
    assert str(found) == "9.54e-07 at [1]; at most 8 ulps of the element, 0.00781 of the largest"


def test_what_is_not_finite_must_be_the_same():
    exact = np.array([np.inf, np.nan, 1e300, 1.0])

    assert str(difference(np.array([np.inf, np.nan, np.inf, 1.0], np.float32), exact)) == "equal"
    assert (
        difference(np.array([np.inf, np.nan, np.inf, np.nan], np.float32), exact).largest == np.inf
    )
    assert difference(np.array([-np.inf, np.nan, np.inf, 1.0], np.float32), exact).ulps == np.inf


def test_integers_have_no_ulps():
    assert str(difference(np.array([1, 5], np.int32), np.array([1, 2]))) == "3 at [1]"
    assert str(difference(np.array([True], np.bool_), np.array([True]))) == "equal"
