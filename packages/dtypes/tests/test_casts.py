"""Casts, bit for bit, against exact integer arithmetic and against ml_dtypes."""

import os
import sys

import ml_dtypes
import numpy as np
import pytest

import nki_dtypes
from nki_dtypes import ALL, DTypeError, cast, caster, resolve

ML_TYPES = ["bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"]
FLOATS = ["float16", "bfloat16", "tfloat32", *ML_TYPES[1:4]]
INTEGERS = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]
CODED = ["float16", "bfloat16", *ML_TYPES[1:4]]  # float types of 16 bits or fewer
NUMERIC = [d.name for d in ALL if not d.is_packed]
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32}


def words(array):
    return array.view(WORDS[array.dtype.itemsize])


def every_code(name):
    size = resolve(name).itemsize
    return np.arange(1 << 8 * size).astype(WORDS[size]).view(resolve(name).storage)


def reference_words(exact, name, codes):
    """tfloat32 is stored as float32: its codes are the upper 19 bits."""
    return codes << 13 if name == "tfloat32" else codes


@pytest.mark.parametrize("name", FLOATS)
def test_float32_rounds_once_to_nearest_even(name, exact, float32_bits, float32_parts):
    expected = exact.codes(*float32_parts, exact.LAYOUTS[name])
    got = words(cast(float32_bits.view(np.float32), name))
    number = ~float32_parts[3]
    np.testing.assert_array_equal(got[number], reference_words(exact, name, expected)[number])


@pytest.mark.parametrize("name", ML_TYPES)
def test_float32_casts_equal_ml_dtypes_nans_included(name, float32_bits):
    source = float32_bits.view(np.float32)
    with np.errstate(invalid="ignore"):
        expected = source.astype(getattr(ml_dtypes, name))
    np.testing.assert_array_equal(words(cast(source, name)), words(expected))


@pytest.mark.parametrize("name", FLOATS[:3])
def test_nan_stays_nan_and_keeps_its_sign(name, float32_bits, float32_parts):
    nan = float32_parts[3]
    got = cast(float32_bits[nan].view(np.float32), name).astype(np.float32)
    assert np.isnan(got).all()
    np.testing.assert_array_equal(np.signbit(got), float32_bits[nan] >> 31 == 1)


def test_a_tfloat32_nan_is_quiet_and_keeps_its_upper_payload():
    got = words(cast(np.array([0x7F800001, 0xFFA5_5FFF], np.uint32).view(np.float32), "tfloat32"))
    assert [hex(word) for word in got] == ["0x7fc00000", "0xffe54000"]


@pytest.mark.parametrize("name", INTEGERS)
def test_float32_to_integer_rounds_half_to_even_and_saturates(name, exact, float32_bits):
    limits = np.iinfo(name)
    expected = exact.integers(float32_bits, limits.min, limits.max)
    np.testing.assert_array_equal(cast(float32_bits.view(np.float32), name), expected)


@pytest.mark.parametrize("dst", [*FLOATS, "float32"])
@pytest.mark.parametrize("src", CODED)
def test_every_16_bit_float_converts_like_its_exact_value(src, dst, exact):
    source = every_code(src)
    values = exact.decode(words(source), exact.LAYOUTS[src])
    parts = exact.float32_parts(values.astype(np.float32).view(np.uint32))  # exact: 11 bits
    expected = reference_words(exact, dst, exact.codes(*parts, exact.LAYOUTS[dst]))
    number = ~np.isnan(values)
    np.testing.assert_array_equal(words(cast(source, dst))[number], expected[number])


@pytest.mark.parametrize("dst", INTEGERS)
@pytest.mark.parametrize("src", CODED)
def test_every_16_bit_float_rounds_to_integers(src, dst, exact):
    values = exact.decode(words(every_code(src)), exact.LAYOUTS[src]).astype(np.float32)
    limits = np.iinfo(dst)
    expected = exact.integers(values.view(np.uint32), limits.min, limits.max)
    np.testing.assert_array_equal(cast(every_code(src), dst), expected)


@pytest.mark.parametrize("src", [*CODED, "float8_e8m0fnu"])
def test_every_16_bit_float_widens_as_numpy_does(src):
    source = every_code(src)
    np.testing.assert_array_equal(
        words(nki_dtypes.widener(src)(source)), words(source.astype(np.float32))
    )


@pytest.mark.parametrize(
    "see", [lambda x: x, lambda x: x[:, ::2], lambda x: x.T], ids=["dense", "strided", "transposed"]
)
def test_tiles_of_neighbouring_float16_are_widened_exactly(see):
    """One tile has no infinities and NaN beside its numbers, unless they are its neighbours."""
    for tile in np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(32, 64, 32):
        expected = see(tile).astype(np.float32)
        assert np.array_equal(words(nki_dtypes.widener("float16")(see(tile))), words(expected))


@pytest.mark.parametrize(
    ("src", "dst"),
    [(a, b) for a in (*CODED, "float8_e8m0fnu") for b in ML_TYPES if a != b],
)
def test_casts_between_narrow_floats_equal_ml_dtypes_through_float32(src, dst):
    source = every_code(src)
    with np.errstate(invalid="ignore"):
        expected = source.astype(np.float32).astype(getattr(ml_dtypes, dst))
    np.testing.assert_array_equal(words(cast(source, dst)), words(expected))


def integers_near_ties(name):
    """Every 8- and 16-bit integer; of the 32-bit ones, powers of two and ties around them."""
    limits = np.iinfo(name)
    if limits.bits <= 16:
        return np.arange(limits.min, limits.max + 1).astype(name)
    random = np.random.default_rng(3)
    widths = random.integers(1, 33, 400_000)
    upper = random.integers(0, 1 << widths, dtype=np.int64)
    drop = random.integers(0, 24, upper.shape)
    tail = (1 << drop >> 1) + random.integers(-1, 2, upper.shape)
    near = np.clip((upper >> drop << drop) + tail, limits.min, limits.max)
    ends = [limits.min, limits.min + 1, limits.max - 1, limits.max, 0]
    signed = np.concatenate([near, -near]) if limits.min else near
    return np.concatenate([signed, ends]).astype(name)


@pytest.mark.parametrize("dst", [*FLOATS, "float32"])
@pytest.mark.parametrize("src", INTEGERS)
def test_integer_to_float_rounds_the_exact_integer_once(src, dst, exact):
    source = integers_near_ties(src)
    wide = source.astype(np.int64)
    parts = ((wide < 0).astype(np.int64), np.abs(wide), np.zeros_like(wide), wide > 1 << 40)
    expected = reference_words(exact, dst, exact.codes(*parts, exact.LAYOUTS[dst]))
    np.testing.assert_array_equal(words(cast(source, dst)), expected)


@pytest.mark.parametrize("power", range(24, 31))
def test_one_integer_just_above_a_tie_rounds_up(power):
    tie, step = 2**power + 2 ** (power - 8), 2 ** (power - 7)  # bfloat16 has 8 bits
    for integer, rounded in ((tie, 2**power), (tie + 1, 2**power + step)):
        assert cast([integer], "bfloat16").astype(np.float32).tolist() == [rounded]
        assert cast([-integer], "bfloat16").astype(np.float32).tolist() == [-rounded]


@pytest.mark.parametrize("dst", INTEGERS)
@pytest.mark.parametrize("src", INTEGERS)
def test_integer_to_integer_saturates(src, dst):
    source, limits = integers_near_ties(src), np.iinfo(dst)
    expected = [min(max(int(value), limits.min), limits.max) for value in source[-2000:]]
    assert cast(source, dst)[-2000:].tolist() == expected


@pytest.mark.parametrize("name", NUMERIC)
def test_anything_but_zero_becomes_true(name):
    zeros = np.zeros(3, resolve(name).storage)
    ones = np.ones(3, resolve(name).storage)
    assert cast(ones, "bool_", from_=name).tolist() == [1, 1, 1]
    assert cast(zeros, "bool_", from_=name).any() == (name == "float8_e8m0fnu")  # code 0 is 2^-127


def test_nan_becomes_true_and_negative_zero_false():
    assert cast(np.array([np.nan, -0.0, 1e-45], np.float32), "bool_").tolist() == [1, 0, 1]


@pytest.mark.parametrize("name", [n for n in NUMERIC if n != "float8_e8m0fnu"])
def test_any_nonzero_bool_code_is_one(name):
    expected = [0, 1, 1] * 400
    got = cast(np.array([0, 1, 255] * 400, np.uint8), name, from_="bool_")
    if name == "bool_":  # same format: bits are copied
        expected = [0, 1, 255] * 400
    assert got.astype(np.float32).tolist() == expected
    assert cast(np.array([False, True]), name).astype(np.float32).tolist() == [0, 1]


def test_nan_becomes_the_integer_asked_for():
    nan = np.full(1000, np.nan, np.float32)
    assert set(cast(nan, "int16", nan_as_int=-32768).tolist()) == {-32768}
    assert set(cast(nan.astype(np.float16), "int16", nan_as_int=7).tolist()) == {7}


def test_cast_is_silent_about_signalling_nans():
    for size in (1, 1000):  # warnings are errors here
        nan = np.full(size, 0x7F800001, np.uint32).view(np.float32)
        assert all(cast(nan, name).size == size for name in NUMERIC)


def test_no_warning_for_overflow_to_infinity():
    out = np.zeros(3, np.float16)
    caster("float32", "float16")(np.array([1e9, -1e9, 65519], np.float32), out)
    assert out.tolist() == [np.inf, -np.inf, 65504]


def test_scales_are_powers_of_two_and_anything_else_is_nan():
    got = cast([1.0, 1.25, 1.5, 3.0, 2.0**-130, 0.75 * 2**-126, 0.0, -1.0, np.inf], "e8m0")
    assert words(got).tolist() == [127, 127, 128, 129, 0, 1, 255, 255, 255]


@pytest.mark.parametrize("src", NUMERIC)
@pytest.mark.parametrize("dst", NUMERIC)
def test_large_and_strided_arrays_convert_like_single_elements(src, dst):
    random = np.random.default_rng(5)
    size = resolve(src).itemsize
    bits = random.integers(0, 1 << 8 * size, (40, 3, 60)).astype(WORDS[size])
    source = bits.view(resolve(src).storage).transpose(2, 0, 1)[::2, :, 1:]
    out = np.zeros((30, 2, 40), resolve(dst).storage).transpose(0, 2, 1)
    with np.errstate(invalid="ignore"):
        caster(src, dst)(source, out)
        single = np.array([cast(one, dst, from_=src) for one in source[::9, ::13].ravel()])
    np.testing.assert_array_equal(words(out[::9, ::13].ravel()), words(single))


@pytest.mark.parametrize("shape", [(0,), (0, 5), (1, 1), (511,), (512,), (1, 70_001), (70_001, 1)])
def test_every_size_is_converted_whole(shape):
    source = np.full(shape, 3.0, ml_dtypes.float8_e4m3)
    got = cast(source, "float32")
    assert got.shape == shape
    assert (got == 3.0).all()


@pytest.mark.parametrize("src", ["float32", "float8_e5m2", "int32", "bool_"])
@pytest.mark.parametrize("dst", NUMERIC)
def test_a_caster_broadcasts_its_source(src, dst):
    column = cast([[1.0], [np.nan], [3e9], [0.0]], src)
    out = np.zeros((4, 1000), resolve(dst).storage)
    caster(src, dst, nan_as_int=dst in INTEGERS and 5)(column, out)
    single = cast(column, dst, from_=src, nan_as_int=dst in INTEGERS and 5)
    np.testing.assert_array_equal(words(out), np.repeat(words(single), 1000, axis=1))


@pytest.mark.parametrize("name", [n for n in NUMERIC if resolve(n).itemsize <= 2])
def test_the_same_format_copies_bits(name):
    source = every_code(name)
    np.testing.assert_array_equal(words(cast(source, name, from_=name)), words(source))


def test_float32_and_tfloat32_need_no_widening():
    source = np.ones((2, 3), np.float32)
    assert nki_dtypes.widener("float32")(source) is source
    assert nki_dtypes.widener("tfloat32")(source) is source


def test_a_pair_is_compiled_once():
    assert caster("bf16", np.float32) is caster(ml_dtypes.bfloat16, "nl.float32")


def test_python_numbers_are_weak():
    assert cast(2.5, "int8").tolist() == 2
    assert cast([1, 2**31 - 1], "float32").tolist() == [1.0, 2.0**31]
    assert cast([True, False], "bf16").astype(np.float32).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("array", [np.zeros(2), np.zeros(2, np.int64), np.zeros(2, complex)])
def test_64_bit_arrays_are_rejected_with_the_cure(array):
    with pytest.raises(nki_dtypes.UnknownDTypeError, match=r"hint: .*(float32|int32)"):
        cast(array, "bf16")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cast(np.zeros(4, np.float32), "float8_e5m2_x4"), "pack_x4"),
        (lambda: cast(np.zeros(4, np.uint32), "float32", from_="float8_e5m2_x4"), "unpack_x4"),
        (lambda: nki_dtypes.widener("float4_e2m1fn_x4"), "unpack_x4"),
        (lambda: cast(np.zeros(4, np.float32), "bf16", from_="bf16"), "cannot hold bfloat16"),
        (lambda: cast([2**31], "float32"), "does not fit into int32"),
        (lambda: cast(np.zeros(1, np.float32), "int8", nan_as_int=128), "-128 … 127"),
    ],
)
def test_what_has_no_meaning_is_rejected(call, message):
    with pytest.raises(DTypeError, match=message):
        call()


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ML_TYPES)
def test_all_float32_values_equal_ml_dtypes(name, capsys):
    step, convert = 1 << 24, caster("float32", name)
    out = np.empty(step, resolve(name).storage)
    for start in range(0, 1 << 32, step):
        source = np.arange(start, start + step, dtype=np.uint32).view(np.float32)
        with np.errstate(invalid="ignore"):
            convert(source, out)
            expected = source.astype(getattr(ml_dtypes, name))
        assert np.array_equal(words(out), words(expected)), hex(start)
        report(capsys, f"{name}: {(start + step) >> 24}/256")


@pytest.mark.thorough
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ["tfloat32"])  # the one that ml_dtypes does not have
def test_all_float32_values_round_like_exact_integers(name, exact, capsys):
    step = 1 << 22
    for start in range(0, 1 << 32, step):
        bits = np.arange(start, start + step, dtype=np.uint32)
        parts = exact.float32_parts(bits)
        expected = exact.codes(*parts, exact.LAYOUTS[name])
        wrong = words(cast(bits.view(np.float32), name)) != reference_words(exact, name, expected)
        assert not wrong[~parts[3]].any(), hex(start)
        report(capsys, f"{name}: {(start + step) >> 22}/1024")


def report(capsys, text):
    """One line that overwrites itself, on a terminal only."""
    with capsys.disabled():
        if sys.stderr.isatty() and not os.environ.get("CI"):
            print(f"\r{text} ", end="", file=sys.stderr, flush=True)
