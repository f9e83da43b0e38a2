"""Case arrays: reproducible, rounded once, and carried between processes bit for bit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nki_migrate.verify.arrays import fill_array, load_array, save_array
from nki_migrate.verify.cases import Arg, CasesError


def filled(dtype="float32", shape=(4, 3), position=0, variant=0, **rest):
    return fill_array(Arg("x", dtype=dtype, shape=shape, **rest), 7, variant, position)


def test_the_same_seed_gives_the_same_array_and_another_argument_another_one():
    assert np.array_equal(filled(), filled())
    assert not np.array_equal(filled(), filled(position=1))
    assert not np.array_equal(filled(), filled(variant=1))


def test_bfloat16_is_the_float64_stream_rounded_once():
    wide = filled("float32", shape=(4096,)).astype(np.float64)
    narrow = filled("bfloat16", shape=(4096,)).astype(np.float64)

    # Both roundings are of the same number: half a unit of each type apart at most.
    assert np.all(np.abs(wide - narrow) <= np.abs(wide) * (2.0**-8 + 2.0**-24) * 1.001)


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        ({"fill": "zeros"}, [0, 0, 0]),
        ({"fill": "ones"}, [1, 1, 1]),
        ({"fill": "iota"}, [0, 1, 2]),
        ({"fill": "iota", "low": 5, "scale": 2.0}, [5, 7, 9]),
        ({"role": "output"}, [np.nan] * 3),
    ],
)
def test_plain_fills_hold_what_they_say(fill, expected):
    assert np.array_equal(filled(shape=(3,), **fill), np.array(expected), equal_nan=True)


def test_bounds_hold_low_inclusive_and_high_exclusive():
    values = filled("int8", shape=(1000,), fill="integers", low=-3, high=2)

    assert values.dtype == np.int8
    assert set(values.tolist()) == {-3, -2, -1, 0, 1}


def test_a_normal_distribution_of_integers_is_rejected():
    with pytest.raises(CasesError, match="fill 'normal' needs a float dtype, got int32"):
        filled("int32", fill="normal")


def test_an_unknown_dtype_is_rejected():
    with pytest.raises(CasesError, match="dtype 'float31'"):
        filled("float31")


@pytest.mark.parametrize(
    "dtype", [np.float32, np.int8, np.bool_, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2]
)
def test_arrays_travel_bit_for_bit(tmp_path, dtype):
    bits = np.random.default_rng(0).integers(0, 2, (3, 5, 8), dtype=np.uint8)
    array = bits.astype(dtype)

    back = load_array(tmp_path, save_array(array, tmp_path / "a.bin"))

    assert back.dtype == array.dtype and back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    assert back.flags.writeable


def test_empty_and_zero_dimensional_arrays_travel(tmp_path):
    for array in (np.zeros((0, 4), np.float32), np.array(3.5, np.float32)):
        back = load_array(tmp_path, save_array(array, tmp_path / "a.bin"))

        assert back.shape == array.shape and np.array_equal(back, array)


def test_ties_occur_in_every_row():
    values = filled(shape=(4, 16), fill="ties")

    assert all(len(set(row)) < 16 for row in values.tolist())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3", "int32", "uint8", "bool"])
def test_extremes_are_the_ends_of_the_format(dtype):
    values = filled(dtype, shape=(400,), fill="extremes")

    if ml_dtypes.finfo and values.dtype.kind in "fV":
        finite = values[np.isfinite(values.astype(np.float32))]
        assert finite.astype(np.float32).max() == float(ml_dtypes.finfo(values.dtype).max)
        assert not np.isfinite(values.astype(np.float32)).all()
    elif values.dtype.kind in "iu":
        ends = np.iinfo(values.dtype)
        assert {ends.min, ends.max, 0, 1} <= set(values.tolist())


def test_some_elements_are_nan_and_others_are_not():
    assert 0 < np.isnan(filled(shape=(64,), fill="nan")).sum() < 64


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_large_integers_are_ones_that_float32_rounds(dtype):
    values = filled(dtype, shape=(64,), fill="large_integers")

    assert (values > 2**24).all()
    assert (values.astype(np.float32).astype(np.int64) != values).any()
