"""2ˣ of floats."""

from __future__ import annotations

import numpy as np
import pytest

from nkigen_lite.compiler.compile import compile
from nkigen_lite.tensors.ulps import difference


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_powers_of_two_are_exact_at_integers(moves):
    kernel = moves(lambda x: 2.0**x, np.arange(-160, 140, dtype=np.float32))

    whole = np.arange(-160, 140)
    assert np.array_equal(kernel(whole.astype(np.float32)), np.ldexp(np.float32(1), whole))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_exp2_is_exact_where_numpys_is_not():
    whole = np.arange(-160, 140)
    x = whole.astype(np.float32)

    assert np.array_equal(compile(np.exp2, x)(x), np.ldexp(np.float32(1), whole))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_where_nothing_is_left_and_where_too_much_is(moves):
    moves(np.exp2, np.array([-np.inf, np.inf, -1e30, 1e30, -150.5, 128, 0, -0.0], np.float32))


def test_nan_stays():
    x = np.array([np.nan, 1], np.float32)

    assert np.array_equal(compile(np.exp2, x)(x), np.array([np.nan, 2]), equal_nan=True)


@pytest.mark.parametrize(("least", "most"), [(-125, 127.9), (-1, 1), (-1e-6, 1e-6)])
def test_between_integers_two_roundings_are_allowed(assert_lowers_right, least, most):
    x = np.random.default_rng(0).uniform(least, most, (130, 17)).astype(np.float32)
    ulps = difference(assert_lowers_right(np.exp2, x)(x), np.exp2(x.astype(np.float64))).ulps

    assert ulps is not None and ulps <= 2


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_narrow_floats_are_rounded_once(moves):
    moves(np.exp2, np.arange(-24, 16, dtype=np.float16))
