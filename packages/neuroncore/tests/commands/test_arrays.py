"""Arrays travel between processes as bytes: no pickle is written or loaded."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from neuroncore.commands.arrays import (
    SpecSizeError,
    argument_spec,
    load_arrays,
    save_arrays,
    split_spec,
)


def test_arrays_of_every_kind_come_back_equal(tmp_path):
    given = [
        np.arange(6, dtype=np.float32).reshape(2, 3).astype(ml_dtypes.bfloat16),
        np.zeros((0, 4), ml_dtypes.float8_e5m2),
        np.array(2.5, np.float32),
        np.arange(12, dtype=np.int32)[::-2],
        np.array([True, False]),
    ]

    save_arrays(tmp_path / "arrays", given)
    found = load_arrays(tmp_path / "arrays")

    assert [a.dtype for a in found] == [a.dtype for a in given]
    for one, other in zip(found, given, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_file_with_a_pickle_is_rejected(tmp_path):
    np.savez(tmp_path / "arrays.npz", **{"0 object 1": np.array([{}], object)})

    with pytest.raises(ValueError, match="allow_pickle"):
        load_arrays(tmp_path / "arrays.npz")


@pytest.mark.parametrize(
    "sizes", ["99999999999,99999999999", "9" * 30, "9" * 5000, "1," * 30 + "2" * 18]
)
def test_a_size_that_no_array_has_is_rejected(sizes):
    with pytest.raises(SpecSizeError, match="no array is that large"):
        split_spec(f"f32[{sizes}]")


@pytest.mark.parametrize("sizes", ["-1", "1 2", ",", "1,,2", "²", "x"])
def test_text_that_is_not_a_list_of_sizes_is_no_spec(sizes):
    assert split_spec(f"f32[{sizes}]") is None


def test_leading_zeros_and_a_last_comma_are_read():
    assert split_spec("f32[ 08, 4, ]") == ("f32", (8, 4))
    assert split_spec("i32[]") == split_spec("i32[()]") == ("i32", ())


def test_an_argument_of_a_kernel_has_elements():
    with pytest.raises(SpecSizeError, match="without elements"):
        argument_spec("f32[0, 4]")


def test_an_array_has_at_most_32_dimensions():
    assert split_spec(f"f32[{'1,' * 32}]") == ("f32", (1,) * 32)
    with pytest.raises(SpecSizeError, match="at most 32 dimensions"):
        split_spec(f"f32[{'1,' * 33}]")
