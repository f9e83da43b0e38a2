"""When two arrays are the same numbers."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nki_migrate.verify.compare import Tolerance, compare, less_exact

F32 = np.float32


def difference(actual, expected, dtype=F32, expected_dtype=np.float64, **tolerance):
    return compare(
        np.asarray(actual, dtype), np.asarray(expected, expected_dtype), Tolerance(**tolerance)
    )


def test_equal_arrays_differ_by_nothing():
    found = difference([1.0, np.nan, np.inf, -0.0], [1.0, np.nan, np.inf, 0.0])

    assert (found.is_equal, found.max_error, found.max_ulps) == (True, 0.0, 0.0)


@pytest.mark.parametrize(
    ("actual", "expected"), [(np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0), (np.inf, -np.inf)]
)
def test_nan_and_infinity_equal_only_themselves(actual, expected):
    found = difference([actual], [expected], rtol=1e9, atol=1e9)

    assert not found.is_equal and found.max_error == np.inf


def test_relative_and_absolute_tolerances_add():
    assert difference([1.011], [1.0], rtol=0.01, atol=0.0011).is_equal
    assert not difference([1.011], [1.0], rtol=0.01, atol=0.0009).is_equal


@pytest.mark.parametrize(
    ("dtype", "unit"), [(F32, 2.0**-23), (ml_dtypes.bfloat16, 2.0**-7), (np.float16, 2.0**-10)]
)
def test_ulps_are_units_of_the_output_dtype(dtype, unit):
    two_units_off = [1.0 + 2 * unit]

    assert difference(two_units_off, [1.0], dtype, ulps=2).is_equal
    assert not difference(two_units_off, [1.0], dtype, ulps=1).is_equal
    assert difference(two_units_off, [1.0], dtype, ulps=2).max_ulps == 2.0


def test_the_unit_of_a_subnormal_is_that_of_the_smallest_normal():
    step = 2.0**-149

    assert difference([3 * step], [step], ulps=2).max_ulps == 2.0


def test_without_a_tolerance_32_epsilons_of_the_largest_value_are_allowed():
    eps = 2.0**-23

    assert difference([100.0, 31 * 100 * eps], [100.0, 0.0]).is_equal
    assert not difference([100.0, 33 * 100 * eps], [100.0, 0.0]).is_equal


def test_a_format_of_few_bits_has_a_quarter_of_the_largest_value():
    fp8 = ml_dtypes.float8_e4m3fn

    assert difference([0.5, -2.0], [1.0, -2.0], fp8).is_equal
    assert not difference([0.0, 0.0], [1.0, -2.0], fp8).is_equal


@pytest.mark.parametrize(
    ("actual", "expected", "why"),
    [
        (np.float32, np.float32, None),
        (np.float32, ml_dtypes.bfloat16, None),
        (np.int8, np.float32, None),
        (ml_dtypes.bfloat16, np.float16, "dtype bfloat16, expected float16"),
        (ml_dtypes.float8_e4m3fn, np.float32, "dtype float8_e4m3fn, expected float32"),
    ],
)
def test_a_format_with_fewer_digits_does_not_replace_another(actual, expected, why):
    assert less_exact(np.zeros(1, actual), np.zeros(1, expected)) == why


def test_integers_are_exact_even_where_float64_is_not():
    big = 2**62

    found = compare(np.array([big + 1]), np.array([big]), Tolerance(rtol=1.0))

    assert (found.is_equal, found.max_error) == (False, 1.0)


def test_unsigned_integers_do_not_wrap():
    found = compare(np.array([1], np.uint8), np.array([2], np.uint8), Tolerance())

    assert found.max_error == 1.0


def test_another_shape_is_said_as_such():
    found = difference(np.zeros((128, 1)), np.zeros(128))

    assert found.why == "shape [128, 1], expected [128]"


def test_a_difference_names_how_many_and_the_first():
    found = difference([[1.0, 2.0], [3.5, 4.0]], [[1.0, 2.0], [3.0, 5.0]], rtol=1e-6)

    assert found.why == (
        "2 of 4 elements differ by up to 1; first at [1, 0]: got 3.5, expected 3.0"
    )


def test_nothing_equals_nothing():
    assert difference(np.zeros((0, 4)), np.zeros((0, 4))).is_equal
