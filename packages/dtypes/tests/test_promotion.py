"""The documented table of NKI 0.1: type promotion."""

import itertools

import numpy as np
import pytest

from nki_dtypes import ALL, DTypeError, promote

DOCUMENTED = [
    ("int32", "float16", "float16"),
    ("uint16", "tfloat32", "tfloat32"),
    ("float32", "tfloat32", "float32"),
    ("float32", "bfloat16", "float32"),
    ("float16", "bfloat16", "float32"),
    ("float8_e4m3", "float16", "float16"),
    ("float8_e4m3", "bfloat16", "bfloat16"),
    ("float8_e4m3", "float8_e5m2", "bfloat16"),
    ("int16", "int32", "int32"),
    ("uint8", "uint16", "uint16"),
    ("uint16", "int32", "int32"),
    ("int8", "uint8", "int16"),
    ("int8", "uint16", "int32"),
    ("int32", "uint32", "float32"),
    # The rule applied beyond the documents' examples.
    ("tfloat32", "bfloat16", "tfloat32"),
    ("float8_e4m3", "float8_e4m3fn", "bfloat16"),
    ("int8", "uint32", "float32"),
    ("bool_", "bool_", "bool_"),
    ("bool_", "int8", "int16"),
    ("bool_", "bfloat16", "bfloat16"),
]
ARITHMETIC = [d for d in ALL if not d.is_packed and d.name != "float8_e8m0fnu"]


@pytest.mark.parametrize(("a", "b", "result"), DOCUMENTED)
def test_two_tensors(a: str, b: str, result: str):
    assert str(promote(a, b)) == str(promote(b, a)) == result


@pytest.mark.parametrize(
    ("dtype", "number", "result"),
    [
        ("int8", 2, "int32"),
        ("float16", 1.2, "float32"),
        ("float16", 2, "float16"),
        ("bfloat16", True, "bfloat16"),
        ("int8", True, "int16"),
        ("int8", np.int8(2), "int8"),
        ("float16", np.float16(2), "float16"),
    ],
)
def test_a_bare_python_number_counts_as_the_widest_of_its_kind(dtype, number, result):
    assert str(promote(dtype, number)) == str(promote(number, dtype)) == result


def test_every_pair_has_one_result_whichever_comes_first():
    for a, b in itertools.product(ARITHMETIC, repeat=2):
        assert promote(a, b) is promote(b, a)
        assert promote(a, a) is a


@pytest.mark.parametrize("name", ["float8_e8m0fnu", "float8_e5m2_x4", "float4_e2m1fn_x4"])
def test_scales_and_packed_types_have_no_arithmetic(name: str):
    with pytest.raises(DTypeError, match="nc_matmul_mx"):
        promote(name, "float32")
