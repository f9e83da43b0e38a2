"""Arrays travel between processes as bytes: no pickle is written or loaded."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from neuroncore.commands.arrays import load_arrays, save_arrays


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
