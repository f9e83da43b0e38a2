"""What each format is: its storage, its limits, its identity."""

import copy
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import nki_dtypes
from nki_dtypes import ALL, DType, Kind, finfo, resolve

# NKI data types: name, bits, first version.
DOCUMENTED = {
    "bool_": (8, "0.1"),
    "int8": (8, "0.1"),
    "int16": (16, "0.1"),
    "int32": (32, "0.1"),
    "uint8": (8, "0.1"),
    "uint16": (16, "0.1"),
    "uint32": (32, "0.1"),
    "float16": (16, "0.1"),
    "bfloat16": (16, "0.1"),
    "float32": (32, "0.1"),
    "tfloat32": (32, "0.1"),
    "float8_e4m3": (8, "0.1"),
    "float8_e5m2": (8, "0.1"),
    "float8_e4m3fn": (8, "0.2"),
    "float8_e8m0fnu": (8, "0.5"),
    "float8_e5m2_x4": (32, "0.2"),
    "float8_e4m3fn_x4": (32, "0.2"),
    "float4_e2m1fn_x4": (16, "0.2"),
}
EVERY = pytest.mark.parametrize("dtype", ALL, ids=str)


def test_all_names_exactly_the_documented_formats():
    assert {d.name: (d.bits, d.since) for d in ALL} == DOCUMENTED


@EVERY
def test_a_format_is_one_object(dtype: DType):
    assert str(dtype) == dtype.name
    assert getattr(nki_dtypes, dtype.name) is dtype is resolve(dtype.name)
    assert pickle.loads(pickle.dumps(dtype)) is copy.deepcopy(dtype) is copy.copy(dtype) is dtype


@EVERY
def test_a_format_cannot_be_changed(dtype: DType):
    with pytest.raises(AttributeError):
        dtype.bits = 3  # type: ignore[misc]


@EVERY
def test_numpy_accepts_a_format_as_a_dtype(dtype: DType):
    array = np.zeros((2, 3), dtype)
    assert array.dtype == dtype.words
    assert resolve(array.dtype).name == dtype.name or not dtype.is_packed
    assert array.itemsize * 8 == dtype.itemsize * 8 == dtype.bits


@pytest.mark.parametrize("dtype", [d for d in ALL if d.is_packed], ids=str)
def test_a_packed_type_is_found_by_the_dtype_of_its_arrays(dtype: DType):
    counts: dict[object, int] = {dtype: 7}

    assert counts[np.zeros(2, dtype).dtype] == counts[dtype] == 7


def test_types_numpy_lacks_are_stored_as_documented():
    stored = {name: str(resolve(name).storage) for name in ("bool_", "tfloat32", "bfloat16")}
    assert stored == {"bool_": "uint8", "tfloat32": "float32", "bfloat16": "bfloat16"}
    packed = {d.name: (str(d.storage), str(d.element), d.lanes) for d in ALL if d.is_packed}
    assert packed == {
        "float8_e5m2_x4": ("uint32", "float8_e5m2", 4),
        "float8_e4m3fn_x4": ("uint32", "float8_e4m3fn", 4),
        "float4_e2m1fn_x4": ("uint16", "float4_e2m1fn", 4),
    }


@EVERY
def test_predicates_follow_the_kind(dtype: DType):
    assert dtype.is_float == (dtype.kind is Kind.FLOAT)
    assert dtype.is_integer == (dtype.name.strip("u")[:3] == "int")
    assert dtype.is_packed == dtype.name.endswith("_x4") == (dtype.element is not dtype)


@pytest.mark.parametrize(
    ("name", "largest"),
    [("float8_e4m3", 240), ("float8_e4m3fn", 448), ("float8_e5m2", 57344), ("float4_e2m1fn_x4", 6)],
)
def test_documented_maxima(name: str, largest: float):
    assert finfo(name).max == resolve(name).max == largest


@pytest.mark.parametrize(
    "name",
    ["float16", "bfloat16", "float32", "float8_e4m3", "float8_e4m3fn", "float8_e5m2"],
)
def test_float_limits_equal_those_of_numpy_and_ml_dtypes(name: str):
    ours, theirs = finfo(name), ml_dtypes.finfo(resolve(name).storage)
    for limit in ("max", "min", "tiny", "smallest_normal", "smallest_subnormal", "eps", "bits"):
        assert getattr(ours, limit) == float(getattr(theirs, limit)), limit
    assert (ours.mantissa_bits, ours.exponent_bits) == (theirs.nmant, theirs.nexp)


def test_a_lane_of_four_bits_has_the_limits_of_ml_dtypes():
    ours, theirs = finfo("float4_e2m1fn_x4"), ml_dtypes.finfo(ml_dtypes.float4_e2m1fn)
    assert (ours.max, ours.tiny, ours.smallest_subnormal, ours.eps) == (6, 1, 0.5, 0.5)
    assert (ours.max, ours.tiny) == (float(theirs.max), float(theirs.tiny))
    assert not ours.has_nan
    assert not ours.has_infinity


def test_a_scale_is_a_power_of_two():
    limits = finfo("float8_e8m0fnu")
    assert (limits.min, limits.max, limits.eps) == (2.0**-127, 2.0**127, 1)
    assert (limits.has_nan, limits.has_infinity) == (True, False)


def test_tfloat32_has_the_range_of_float32_and_the_precision_of_float16():
    limits = finfo("tfloat32")
    assert limits.max == (2 - 2.0**-10) * 2.0**127
    assert (limits.eps, limits.tiny) == (2.0**-10, 2.0**-126)


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_integer_limits_are_exact_integers(name: str):
    ours, theirs = finfo(name), np.iinfo(name)
    assert (ours.min, ours.max, ours.bits) == (theirs.min, theirs.max, theirs.bits)
    assert isinstance(ours.max, int)
    assert not ours.has_nan


def in_a_new_interpreter(code: str) -> str:
    """What `code` prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_import_brings_in_numpy_and_ml_dtypes_only():
    loaded = in_a_new_interpreter(
        "import sys\n"
        "before = set(sys.modules)\n"
        "import nki_dtypes\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "print(*sorted(new - sys.stdlib_module_names))"
    )
    assert loaded == "ml_dtypes nki_dtypes numpy"


def test_an_ml_dtypes_without_the_newer_types_still_imports():
    said = in_a_new_interpreter(
        "import ml_dtypes, numpy as np\n"
        "del ml_dtypes.float8_e8m0fnu, ml_dtypes.float4_e2m1fn, ml_dtypes.float8_e4m3\n"
        "import nki_dtypes\n"
        "try: nki_dtypes.cast(np.float32([1]), 'float8_e4m3')\n"
        "except nki_dtypes.DTypeError as error: print(error.what, '|', error.hint)\n"
        "print(nki_dtypes.cast(np.uint8([3]), 'bfloat16'))"
    )
    assert said.splitlines() == [
        'the installed ml_dtypes does not know float8_e4m3 | pip install "ml_dtypes>=0.5.1"',
        "[3]",
    ]
