"""quantize_mx and nc_matmul_mx against float64 formulas of the OCP formats."""

from __future__ import annotations

from math import floor, log2

import numpy as np
import pytest

from neuroncore.checks import Report
from neuroncore.checks.memory import Memory
from neuroncore.errors import (
    AttributeValueError,
    DTypeError,
    PartitionError,
    ShapeError,
    UndefinedError,
    UnsupportedError,
)
from neuroncore.instructions import INSTRUCTIONS, Call
from neuroncore.isa.functions import make_function
from neuroncore.machine.accesses import touched
from neuroncore.surface import signature

FORMATS = {  # exponent bits, mantissa bits, bits of a lane, Emax, largest
    "float8_e4m3fn": (4, 3, 8, 8, 448.0),
    "float8_e5m2": (5, 2, 8, 15, 57344.0),
    "float4_e2m1fn": (2, 1, 4, 2, 6.0),
}


@pytest.fixture
def world(make_world):
    return make_world("trn3")


def of_version(name, version):
    found = signature(name, version)
    assert found is not None
    return make_function(INSTRUCTIONS[name], found)


def number(code, kind):
    """What the bits of one lane say, by the definition of the format."""
    exponent_bits, mantissa_bits, bits, _, _ = FORMATS[kind]
    bias = 2 ** (exponent_bits - 1) - 1
    sign = -1.0 if code >> (bits - 1) else 1.0
    exponent = code >> mantissa_bits & (2**exponent_bits - 1)
    fraction = code % 2**mantissa_bits / 2**mantissa_bits
    if exponent == 0:
        return sign * fraction * 2.0 ** (1 - bias)
    return sign * (1 + fraction) * 2.0 ** (exponent - bias)


def lanes(words, kind):
    """(P, F) words as (P, F, 4) numbers, the lowest bits first."""
    bits = FORMATS[kind][2]
    flat = [number(int(w) >> bits * j & (2**bits - 1), kind) for w in words.flat for j in range(4)]
    return np.reshape(flat, (*words.shape, 4))


def place(partition):
    """The row of a scale tile that belongs to a partition of the data."""
    return partition // 32 * 32 + partition % 32 // 8


# -- quantize_mx ----------------------------------------------------------------------------------


def exponent_of(group, kind, version):
    largest = np.abs(group).max()
    if largest == 0:
        return -127
    room = FORMATS[kind][3] - (1 if version >= "0.5" else 0)
    return max(floor(log2(largest)) - room, -127)


@pytest.mark.parametrize("version", ["0.2", "0.4", "0.5", "0.6"])
@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize("source", ["bfloat16", "float16"])
@pytest.mark.parametrize("partitions", [32, 128])
def test_each_group_has_the_power_of_two_that_fits_its_largest(
    world, rng, values, rounded, version, kind, source, partitions
):
    spread = 2.0 ** rng.integers(-8, 8, (partitions // 8, 1, 3, 1))
    exact = rng.normal(0, 1, (partitions // 8, 8, 3, 4)) * spread
    exact[1, :, 2] = 0
    src = world.tile(exact.reshape(partitions, 12), source)
    dst = world.new((partitions, 3), f"{kind}_x4")
    scale = world.tile(np.full((4 if partitions == 32 else partitions, 3), 9), "uint8")

    of_version("quantize_mx", version)(dst, src, scale)

    given, got = values(src).reshape(partitions, 3, 4), lanes(dst.array, kind)
    largest = FORMATS[kind][4]
    for p in range(partitions):
        for f in range(3):
            first = p // 8 * 8
            x = exponent_of(given[first : first + 8, f], kind, version)
            assert scale.array[place(p), f] == x + 127
            fitted = np.clip(given[p, f] / 2.0**x, -largest, largest)
            assert got[p, f].tolist() == rounded(fitted, kind).tolist()
    touched = {place(p) for p in range(partitions)}
    assert (scale.array[sorted(set(range(len(scale.array))) - touched)] == 9).all()


def test_up_to_04_the_largest_of_a_group_may_saturate(world):
    src = world.tile(np.full((32, 4), 1.9921875), "bfloat16")

    def codes(version):
        dst, scale = world.new((32, 1), "float8_e4m3fn_x4"), world.new((4, 1), "uint8")
        of_version("quantize_mx", version)(dst, src, scale)
        return lanes(dst.array, "float8_e4m3fn")[0, 0, 0], scale.array[0, 0]

    assert codes("0.4") == (448.0, 127 - 8)
    assert codes("0.5") == (256.0, 127 - 7)


def test_a_group_that_is_not_finite_has_no_scale(world, nisa):
    exact = np.ones((32, 8))
    exact[3, 2], exact[20, 5] = np.inf, np.nan
    scale = world.new((4, 2), "float8_e8m0fnu")

    nisa.quantize_mx(world.new((32, 2), "float8_e5m2_x4"), world.tile(exact, "bfloat16"), scale)

    codes = scale.array.view(np.uint8)
    assert (codes == 255).tolist() == [[True, False], [False, False], [False, True], [False, False]]


@pytest.mark.parametrize(("largest", "code"), [(2.0**-121, 0), (2.0**-119, 1), (2.0**127, 247)])
def test_scales_end_at_the_smallest_power(world, nisa, largest, code):
    scale = world.new((4, 1), "uint8")

    nisa.quantize_mx(
        world.new((32, 1), "float8_e4m3fn_x4"), world.tile(np.full((32, 4), largest), "bfloat16"),
        scale,
    )  # fmt: skip

    assert scale.array.ravel().tolist() == [code] * 4


@pytest.mark.parametrize("offset", [0, 4, 8, 12])
def test_scales_of_four_tensors_fit_one_tile(world, nisa, offset):
    packed = world.tile(np.zeros((128, 2)), "uint8")
    src, dst = world.tile(np.ones((128, 8)), "bfloat16"), world.new((128, 2), "float8_e5m2_x4")

    nisa.quantize_mx(dst, src, packed[offset:, :])

    rows = [q + offset + i for q in (0, 32, 64, 96) for i in range(4)]
    expected = np.zeros((128, 2))
    expected[rows] = 127 - 14
    assert packed.array.tolist() == expected.tolist()


@pytest.mark.parametrize("offset", [1, 2, 16])
def test_scales_start_in_the_first_sixteen_partitions_of_a_quadrant(world, nisa, offset):
    packed = world.new((128, 2), "uint8")
    src, dst = world.tile(np.ones((32, 8)), "bfloat16"), world.new((32, 2), "float8_e5m2_x4")

    with pytest.raises(PartitionError, match=f"dst_scale starts at partition {offset}"):
        nisa.quantize_mx(dst, src, packed[offset : offset + 4, :])


def test_scales_lie_in_the_quadrant_of_their_data(world, nisa):
    src, dst = world.tile(np.ones((128, 8)), "bfloat16"), world.new((128, 2), "float8_e5m2_x4")
    scale = world.new((128, 2), "uint8")

    nisa.quantize_mx(dst[32:64, :], src[32:64, :], scale[36:40, :])
    with pytest.raises(PartitionError, match="dst_scale starts at partition 4") as raised:
        nisa.quantize_mx(dst[32:64, :], src[32:64, :], scale[4:8, :])
    assert "32 or 36 or 40 or 44" in str(raised.value)


@pytest.mark.parametrize(
    ("src", "dst", "scale", "error"),
    [
        (((32, 8), "bfloat16"), ((32, 2), "float8_e5m2_x4"), ((4, 2), "uint8"), None),
        (((32, 8), "bfloat16"), ((32, 2), "float8_e5m2_x4"), ((32, 2), "uint8"), None),
        (((96, 8), "float16"), ((96, 2), "float8_e4m3fn_x4"), ((68, 2), "uint8"), None),
        (((96, 8), "float16"), ((96, 2), "float8_e4m3fn_x4"), ((67, 2), "uint8"), ShapeError),
        (((32, 8), "float32"), ((32, 2), "float8_e5m2_x4"), ((4, 2), "uint8"), DTypeError),
        (((32, 8), "bfloat16"), ((32, 2), "float4_e2m1fn_x4"), ((4, 2), "uint8"), DTypeError),
        (((32, 8), "bfloat16"), ((32, 2), "float8_e5m2_x4"), ((4, 2), "int8"), DTypeError),
        (((32, 8), "bfloat16"), ((32, 2), "float8_e5m2_x4"), ((64, 2), "uint8"), ShapeError),
        (((48, 8), "bfloat16"), ((48, 2), "float8_e5m2_x4"), ((48, 2), "uint8"), PartitionError),
        (((32, 6), "bfloat16"), ((32, 1), "float8_e5m2_x4"), ((4, 1), "uint8"), ShapeError),
    ],
)  # fmt: skip
def test_what_quantize_mx_takes(world, nisa, src, dst, scale, error):
    tiles = world.new(*dst), world.tile(np.zeros(src[0]), src[1]), world.new(*scale)

    if error is None:
        nisa.quantize_mx(*tiles)
        return
    with pytest.raises(error):
        nisa.quantize_mx(*tiles)


def test_scales_have_a_dtype_of_their_own_from_05_on(world):
    tiles = (world.new((32, 1), "float8_e5m2_x4"), world.tile(np.zeros((32, 4)), "bfloat16"),
             world.new((4, 1), "float8_e8m0fnu"))  # fmt: skip

    of_version("quantize_mx", "0.5")(*tiles)
    with pytest.raises(DTypeError, match="dst_scale is float8_e8m0fnu"):
        of_version("quantize_mx", "0.4")(*tiles)


def test_memory_looks_at_the_scales_that_are_written(make_world, nisa):
    report = Report()
    world = make_world("trn3", watchers=[Memory(report)])
    src = world.tile(np.ones((128, 8)), "bfloat16")
    packed, data = world.new((128, 2), "uint8"), world.new((128, 2), "float8_e5m2_x4")

    nisa.quantize_mx(data, src, packed[4:, :])
    nisa.nc_matmul_mx(
        world.new((2, 2), "float32", "psum"), data, data, packed[4:, :], packed[4:, :]
    )
    assert list(report) == []

    nisa.nc_matmul_mx(
        world.new((2, 2), "float32", "psum"), data, data, packed[4:, :], packed[8:, :]
    )
    assert [f.operand for f in report] == ["moving_scale"]


@pytest.mark.parametrize(("offset", "rows"), [(0, [0, 1, 2, 3]), (12, [12, 13, 14, 15])])
def test_four_partitions_of_every_quadrant_are_touched(world, offset, rows):
    packed = world.tile(np.zeros((128, 2)), "uint8")
    data = world.new((128, 2), "float8_e5m2_x4")
    views = {"dst": data, "src": world.tile(np.zeros((128, 8)), "bfloat16"),
             "dst_scale": packed[offset:, :]}  # fmt: skip
    record = INSTRUCTIONS["quantize_mx"]
    call = Call(record, {n: v.spec for n, v in views.items()}, {}, world.core.target)

    (scale,) = (t for t in touched(call, views) if t.operand == "dst_scale")

    every = [q + r for q in (0, 32, 64, 96) for r in rows]
    named = {byte // 2 for part in scale.footprints for byte in bytes_of(part)}
    assert sorted(named) == every


def bytes_of(part):
    """The bytes that a footprint names."""
    places = np.zeros((), int)
    for size, stride in zip(part.shape, part.strides, strict=True):
        places = places[..., None] + stride * np.arange(size)
    return (places[..., None] + part.offset + np.arange(part.itemsize)).ravel().tolist()


# -- nc_matmul_mx ---------------------------------------------------------------------------------


def mx_tile(world, rng, kind, partitions, columns):
    """Random words of small finite numbers, their scales, and what they say in float64."""
    exponent_bits, mantissa_bits, bits, _, _ = FORMATS[kind]
    top = 2 ** (exponent_bits - 1 + mantissa_bits) + 2 if bits == 8 else 8  # about 1, or all of fp4
    codes = rng.integers(0, top, (partitions, columns, 4)) | rng.choice([0, 2 ** (bits - 1)], 1)
    words = (codes << bits * np.arange(4)).sum(-1).astype(f"uint{4 * bits}")
    scales = rng.integers(124, 130, (partitions, columns)).astype(np.uint8)
    data, scale = world.new((partitions, columns), f"{kind}_x4"), world.tile(scales, "uint8")
    data.initialize()
    data.array[...] = words
    factors = 2.0 ** (scales[[place(p) for p in range(partitions)]].astype(float) - 127)
    return data, scale, lanes(words, kind) * factors[:, :, None]


@pytest.mark.parametrize("left", FORMATS)
@pytest.mark.parametrize("right", FORMATS)
@pytest.mark.parametrize("partitions", [32, 128])
def test_products_of_four_numbers_and_their_scales_add_up(
    world, nisa, rng, values, left, right, partitions
):
    a, a_scale, exact_a = mx_tile(world, rng, left, partitions, 4)
    b, b_scale, exact_b = mx_tile(world, rng, right, partitions, 5)
    dst = world.new((4, 5), "float32", "psum")

    nisa.nc_matmul_mx(dst, a, b, a_scale, b_scale)

    exact = np.einsum("kmq,knq->mn", exact_a, exact_b)
    size = np.einsum("kmq,knq->mn", np.abs(exact_a), np.abs(exact_b))
    assert (np.abs(values(dst) - exact) <= 4 * partitions * 2.0**-24 * size).all()


def test_what_quantize_mx_makes_is_what_the_matmul_reads(world, nisa, rng, values):
    """Small integers are exact in fp8 with any scale: the product is that of the integers."""
    exact = [rng.integers(-7, 8, (64, columns * 4)) for columns in (2, 3)]
    tiles = []
    for numbers in exact:
        packed = world.new((64, numbers.shape[1] // 4), "float8_e4m3fn_x4")
        scale = world.new(packed.shape, "float8_e8m0fnu")
        nisa.quantize_mx(packed, world.tile(numbers, "bfloat16"), scale)
        tiles.append((packed, scale))
    (a, a_scale), (b, b_scale) = tiles
    dst = world.new((2, 3), "float32", "psum")

    nisa.nc_matmul_mx(dst, a, b, a_scale, b_scale)

    left, right = (n.reshape(64, -1, 4) for n in exact)
    assert values(dst).tolist() == np.einsum("kmq,knq->mn", left, right).tolist()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("accumulate", "times"), [(None, 2), (False, 1), (True, 2)])
def test_products_come_into_psum_as_those_of_nc_matmul(
    world, nisa, values, dtype, accumulate, times
):
    words, scale = world.new((32, 2), "float8_e4m3fn_x4"), world.tile(np.full((4, 2), 127), "uint8")
    words.initialize()
    words.array[...] = 0x38383838  # four ones
    dst = world.new((2, 2), dtype, "psum")

    for turn in (False, accumulate):
        nisa.nc_matmul_mx(dst, words, words, scale, scale, accumulate=turn)

    assert values(dst).tolist() == [[128.0 * times] * 2] * 2


def test_adding_onto_psum_that_nothing_has_written_is_rejected(world, nisa, rng):
    a, scale, _ = mx_tile(world, rng, "float8_e5m2", 32, 2)

    with pytest.raises(UndefinedError, match="accumulates onto PSUM") as raised:
        nisa.nc_matmul_mx(world.new((2, 2), "float32", "psum"), a, a, scale, scale, accumulate=True)
    assert "nc_matmul_mx" in str(raised.value)


def test_a_scale_of_255_is_nan(world, nisa, rng, values):
    a, a_scale, _ = mx_tile(world, rng, "float8_e5m2", 32, 2)
    b, b_scale, _ = mx_tile(world, rng, "float8_e5m2", 32, 2)
    b_scale.array[2, 1] = 255
    dst = world.new((2, 2), "float32", "psum")

    nisa.nc_matmul_mx(dst, a, b, a_scale, b_scale)

    assert np.isnan(values(dst)).tolist() == [[False, True], [False, True]]


@pytest.mark.parametrize(
    ("version", "dtype", "most"),
    [("0.4", "float32", 512), ("0.4", "bfloat16", 1024), ("0.5", "float32", 4096),
     ("0.6", "bfloat16", 8192)],
)  # fmt: skip
def test_the_moving_free_size_by_version(world, version, dtype, most):
    matmul = of_version("nc_matmul_mx", version)

    def run(columns):
        a, b = (world.new((32, n), "float4_e2m1fn_x4") for n in (2, columns))
        scales = [world.tile(np.zeros((4, n)), "uint8") for n in (2, columns)]
        matmul(world.new((2, columns), dtype, "psum") if columns == most
               else world.new((2, most), dtype, "psum"), a, b, *scales)  # fmt: skip

    run(most)
    with pytest.raises(ShapeError, match=f"moving free size {most + 1} exceeds {most}"):
        run(most + 1)


@pytest.mark.parametrize(
    ("position", "size", "error"),
    [
        ((0, 0), (128, 128), None),
        ((64, 0), (64, 128), None),
        ((96, 0), (32, 128), None),
        (None, None, None),
        ((16, 0), (32, 128), AttributeValueError),
        ((0, 0), None, AttributeValueError),
        ((0, 0), (32, 64), AttributeValueError),
        ((0, 32), (32, 128), AttributeValueError),
        ((128, 0), (128, 128), AttributeValueError),
        ((0,), (32, 128), AttributeValueError),
    ],
)
def test_rows_of_the_array_may_be_chosen(world, nisa, rng, position, size, error):
    a, scale, _ = mx_tile(world, rng, "float8_e5m2", 32, 2)
    given = (world.new((2, 2), "float32", "psum"), a, a, scale, scale, position, size)

    if error is None:
        nisa.nc_matmul_mx(*given)
        return
    with pytest.raises(error):
        nisa.nc_matmul_mx(*given)


def test_the_data_fits_the_rows(world, nisa, rng):
    a, scale, _ = mx_tile(world, rng, "float8_e5m2", 64, 2)
    dst = world.new((2, 2), "float32", "psum")

    nisa.nc_matmul_mx(dst, a, a, scale, scale, (0, 0), (64, 128))
    with pytest.raises(ShapeError, match="stationary does not fit the PE tile"):
        nisa.nc_matmul_mx(dst, a, a, scale, scale, (0, 0), (32, 128))


@pytest.mark.parametrize(("columns", "legal"), [(2, True), (128, True), (3, False), (130, False)])
def test_the_stationary_free_size_is_even_and_at_most_128(world, nisa, columns, legal):
    a = world.new((32, columns), "float8_e5m2_x4")
    scale = world.tile(np.zeros((4, columns)), "uint8")
    dst = world.new((min(columns, 128), columns), "float32", "psum")

    if legal:
        nisa.nc_matmul_mx(dst, a, a, scale, scale)
        return
    with pytest.raises(ShapeError, match=f"stationary free size {columns}"):
        nisa.nc_matmul_mx(dst, a, a, scale, scale)


@pytest.mark.parametrize("name", ["quantize_mx", "nc_matmul_mx"])
def test_they_came_with_gen4(make_world, nisa, name):
    old = make_world("trn2")
    data, scale = old.new((32, 2), "float8_e5m2_x4"), old.new((4, 2), "uint8")

    with pytest.raises(UnsupportedError, match=f"trn2 has no {name}"):
        if name == "quantize_mx":
            nisa.quantize_mx(data, old.tile(np.zeros((32, 8)), "bfloat16"), scale)
        else:
            nisa.nc_matmul_mx(old.new((2, 2), "float32", "psum"), data, data, scale, scale)
