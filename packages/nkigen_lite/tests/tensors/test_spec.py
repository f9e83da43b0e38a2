"""Specs: what text and arrays mean, and what NumPy's 64-bit types become."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nki_dtypes import resolve
from nkigen_lite import Spec, as_spec, narrow
from nkigen_lite.tensors.errors import SpecError


@pytest.mark.parametrize(
    ("given", "format_name"),
    [
        (np.float64, "float32"),
        (np.int64, "int32"),
        (np.uint64, "uint32"),
        (np.dtype("float64"), "float32"),
        (float, "float32"),
        (int, "int32"),
        (bool, "bool_"),
        (ml_dtypes.bfloat16, "bfloat16"),
        (np.int8, "int8"),
        ("tf32", "tfloat32"),
    ],
)
def test_64_bits_become_32_and_everything_else_stays(given, format_name):
    assert narrow(given) is resolve(format_name)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("f32[128, 512]", "float32[128, 512]"),
        ("e4m3fn[3]", "float8_e4m3fn[3]"),
        ("i32[]", "int32[()]"),
        ("bool[0, 4]", "bool_[0, 4]"),
        (np.zeros((2, 3)), "float32[2, 3]"),
        (np.int64(4), "int32[()]"),
        (2.5, "float32[()]"),
        (Spec((1,), resolve("uint8")), "uint8[1]"),
    ],
)
def test_a_spec_is_read_from_text_and_from_arrays(given, text):
    assert str(as_spec(given)) == text
    assert as_spec(text) == as_spec(given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("f32", "'f32' is not a spec"),
        ("f31[2]", "is not an NKI dtype"),
        ("f32[-2]", "is not a spec"),
        (np.array([None]), "is not an NKI dtype"),
        (object(), "is neither an array nor a spec"),
    ],
)
def test_what_is_no_spec_is_rejected_at_the_users_line(given, said):
    with pytest.raises(SpecError, match=said) as rejected:
        as_spec(given)

    assert "test_spec.py" in str(rejected.value)
