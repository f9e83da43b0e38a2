"""nc_matmul: products, the three accumulate modes and PSUM's written bits."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest

from neuroncore.enums import MatmulPerfMode
from neuroncore.errors import (
    AttributeValueError,
    CapacityError,
    DTypeError,
    MemorySpaceError,
    PartitionError,
    ShapeError,
    UndefinedError,
    UnsupportedError,
)
from neuroncore.instructions import INSTRUCTIONS, KernelWarning
from neuroncore.isa.functions import make_function
from neuroncore.options import Options
from neuroncore.surface import signature

NARROW = ("bfloat16", "float16", "float8_e4m3", "float8_e5m2")


def whole(rng, shape):
    """Whole numbers that every input dtype holds and whose products sum exactly in float32."""
    return rng.integers(-4, 5, shape)


def product(left, right):
    return np.einsum("km,kn->mn", left, right, dtype=np.float64)


@pytest.mark.parametrize("pair", [(a, b) for a in NARROW for b in NARROW])
def test_narrow_dtypes_mix_and_multiply_exactly(world, nisa, rng, pair):
    left, right = whole(rng, (16, 3)), whole(rng, (16, 5))
    dst = world.new((3, 5), space="psum")

    nisa.nc_matmul(dst, world.tile(left, pair[0]), world.tile(right, pair[1]))

    np.testing.assert_array_equal(dst.array, product(left, right))


@pytest.mark.parametrize(("left", "right"), [("float32", "float32"), ("float32", "tfloat32")])
def test_float32_products_stay_within_the_bound_of_any_order(world, nisa, rng, values, left, right):
    """|error| <= (K + 1) u Σ|a||b| with u = 2^-24: one product and K sums."""
    a, b = (
        world.tile(rng.normal(size=(128, 128)), left),
        world.tile(rng.normal(size=(128, 512)), right),
    )
    dst = world.new((128, 512), space="psum")

    nisa.nc_matmul(dst, a, b)

    bound = 129 * 2.0**-24 * product(np.abs(values(a)), np.abs(values(b)))
    assert np.all(np.abs(values(dst) - product(values(a), values(b))) <= bound)


@pytest.mark.parametrize(
    ("k", "m", "n"), [(1, 1, 1), (128, 128, 512), (127, 127, 511), (1, 128, 1)]
)
def test_the_largest_tiles_fit(world, nisa, rng, k, m, n):
    left, right = whole(rng, (k, m)), whole(rng, (k, n))
    dst = world.new((m, n), space="psum")

    nisa.nc_matmul(dst, world.tile(left, "bfloat16"), world.tile(right, "bfloat16"))

    np.testing.assert_array_equal(dst.array, product(left, right))


@pytest.mark.parametrize(
    ("k", "m", "n", "error", "message"),
    [
        (128, 129, 4, PartitionError, "129 partitions"),
        (128, 128, 513, ShapeError, "moving free size 513 exceeds 512"),
    ],
)
def test_one_element_more_does_not_fit(world, nisa, k, m, n, error, message):
    with pytest.raises(error, match=message):
        nisa.nc_matmul(
            world.new((m, n), space="psum"),
            world.tile(np.ones((k, m))),
            world.tile(np.ones((k, n))),
        )


def test_129_stationary_columns_do_not_fit(world, nisa):
    with pytest.raises(ShapeError, match="stationary free size 129 exceeds 128"):
        nisa.nc_matmul(
            world.new((128, 4), space="psum"), world.tile(np.ones((8, 129))),
            world.tile(np.ones((8, 4))),
        )  # fmt: skip


def test_free_dimensions_are_flattened(world, nisa, rng):
    left, right = whole(rng, (8, 2, 3)), whole(rng, (8, 4, 5))
    dst = world.new((6, 2, 10), space="psum")

    nisa.nc_matmul(dst, world.tile(left), world.tile(right))

    np.testing.assert_array_equal(
        dst.array.reshape(6, 20), product(left.reshape(8, 6), right.reshape(8, 20))
    )


def test_strided_operands_and_destinations(world, nisa, rng):
    left, right = whole(rng, (8, 6)), whole(rng, (8, 12))
    bank = world.new((3, 8), space="psum")

    nisa.nc_matmul(bank[:, 0:8:2], world.tile(left)[:, 0:6:2], world.tile(right)[:, 4:8])

    np.testing.assert_array_equal(bank.array[:, ::2], product(left[:, ::2], right[:, 4:8]))
    assert np.isnan(bank.array[:, 1::2]).all()


def test_a_first_product_leaves_what_it_does_not_cover_undefined(world, nisa, rng):
    left, right = whole(rng, (8, 3)), whole(rng, (8, 4))
    whole_bank, bank = world.new((3, 4), space="psum"), world.new((3, 8), space="psum")

    for dst in (whole_bank, bank[:, 2:6]):
        nisa.nc_matmul(dst, world.tile(left), world.tile(right), accumulate=None)

    np.testing.assert_array_equal(whole_bank.array, product(left, right))
    np.testing.assert_array_equal(bank.array[:, 2:6], product(left, right))
    assert np.isnan(bank.array[:, :2]).all() and np.isnan(bank.array[:, 6:]).all()


def test_an_option_rounds_a_product_of_any_shape_once(make_world, nisa, rng):
    world = make_world(options=Options(product_sums="float64"))
    left, right = rng.normal(size=(2, 128, 128)).astype(np.float32)
    once, twice, narrow = (world.new((128, 128), space="psum") for _ in range(3))

    nisa.nc_matmul(once, world.tile(left), world.tile(right))
    for accumulate in (False, True):
        nisa.nc_matmul(twice, world.tile(left), world.tile(right), accumulate=accumulate)
    for n in range(0, 128, 2):
        nisa.nc_matmul(narrow[:, n : n + 2], world.tile(left), world.tile(right[:, n : n + 2]))

    rounded = product(left, right).astype(np.float32)
    np.testing.assert_array_equal(once.array, rounded)
    np.testing.assert_array_equal(twice.array, rounded + rounded)
    np.testing.assert_array_equal(narrow.array, rounded)


# -- accumulation ---------------------------------------------------------------------------------


@pytest.fixture
def ones(world):
    """stationary, moving (1, 2): every product is 1."""
    return world.tile(np.ones((1, 2))), world.tile(np.ones((1, 2)))


def test_false_overwrites(world, nisa, ones):
    dst = world.new((2, 2), space="psum")

    for _ in range(3):
        nisa.nc_matmul(dst, *ones, accumulate=False)

    assert dst.array.tolist() == [[1, 1], [1, 1]]


def test_none_overwrites_first_and_adds_later(world, nisa, nisa_02, ones):
    for isa in (nisa, nisa_02):  # 0.2 has no other mode
        dst = world.new((2, 2), space="psum")

        for _ in range(3):
            isa.nc_matmul(dst, *ones)

        assert dst.array.tolist() == [[3, 3], [3, 3]]


def test_true_adds(world, nisa, ones):
    dst = world.new((2, 2), space="psum")
    nisa.nc_matmul(dst, *ones, accumulate=False)

    nisa.nc_matmul(dst, *ones, accumulate=True)

    assert dst.array.tolist() == [[2, 2], [2, 2]]


def test_written_bits_are_per_location(world, nisa, ones):
    """Overlapping windows accumulate where they overlap and start where they do not."""
    bank = world.new((2, 4), space="psum")

    for start in (0, 1, 2):
        nisa.nc_matmul(bank[:, start : start + 2], *ones)

    assert bank.array.tolist() == [[1, 2, 2, 1]] * 2


def test_written_bits_are_of_one_bank(world, nisa, ones):
    banks = world.new((2, 1024), space="psum")

    for start in (0, 0, 512):
        nisa.nc_matmul(banks[:, start : start + 2], *ones)

    assert banks.array[:, [0, 512]].tolist() == [[2, 1]] * 2


def test_written_bits_follow_strides(world, nisa, ones):
    bank = world.new((2, 4), space="psum")

    nisa.nc_matmul(bank[:, 0:4:2], *ones)
    nisa.nc_matmul(bank[:, 0:2], *ones)
    nisa.nc_matmul(bank[:, 2:4], *ones)

    assert bank.array.tolist() == [[2, 1, 2, 1]] * 2


def test_written_bits_are_those_of_the_bytes_that_another_dtype_names(make_world, nisa):
    world = make_world("trn3")
    halves = world.new((2, 2), space="psum").view("bfloat16")
    ones = world.tile(np.ones((1, 2)))

    for start in (0, 2, 2):
        nisa.nc_matmul(halves[:, start : start + 2], ones, ones)

    assert halves.array.astype(np.float32).tolist() == [[1, 1, 2, 2]] * 2


@pytest.mark.parametrize("prepared", ["nothing", "memset", "part"])
def test_adding_to_what_no_matmul_wrote_is_undefined(world, nisa, ones, prepared):
    dst = world.new((2, 2), space="psum")
    if prepared == "memset":
        nisa.memset(dst, 0.0)
    elif prepared == "part":
        nisa.nc_matmul(dst[:, 0:1], ones[0], ones[1][:, 0:1])

    with pytest.raises(UndefinedError, match="accumulates onto PSUM that no matmul has written"):
        nisa.nc_matmul(dst, *ones, accumulate=True)


@pytest.mark.parametrize(("policy", "fresh"), [("nan", np.nan), ("add", 6)])
def test_the_assumption_about_unwritten_psum_is_an_option(make_world, nisa, policy, fresh):
    world = make_world(options=Options(accumulate_on_unwritten=policy))
    one, dst = world.tile(np.ones((1, 2))), world.new((2, 2), space="psum")
    nisa.memset(dst, 5.0)
    nisa.nc_matmul(dst[:, 0:1], one, one[:, 0:1])

    nisa.nc_matmul(dst, one, one, accumulate=True)

    np.testing.assert_array_equal(dst.array, [[2, fresh]] * 2)


@pytest.mark.parametrize(("tracking", "total"), [("allocation", [[6, 1]]), ("write", [[1, 1]])])
def test_whether_another_write_ends_an_accumulation_is_an_option(make_world, nisa, tracking, total):
    world = make_world(options=Options(psum_tracking=tracking))
    one, row = world.tile([[1.0]]), world.tile([[1.0, 1.0]])
    dst = world.new((1, 2), space="psum")
    nisa.nc_matmul(dst[:, 0:1], one, one)
    nisa.memset(dst[:, 0:1], 5.0)

    nisa.nc_matmul(dst, one, row)

    assert dst.array.tolist() == total


def test_a_part_that_another_engine_wrote_starts_anew_each_time(make_world, nisa):
    world = make_world(options=Options(psum_tracking="write"))
    one, dst = world.tile([[1.0]]), world.new((1, 2), space="psum")

    for _ in range(2):
        nisa.nc_matmul(dst[:, 0:1], one, one)
        nisa.nc_matmul(dst[:, 0:1], one, one)
        assert dst.array[0, 0] == 2
        nisa.memset(dst[:, 0:1], 5.0)


def test_what_a_predicated_write_leaves_is_still_a_matmuls(make_world, nisa):
    world = make_world(options=Options(psum_tracking="write"))
    one, row = world.tile([[1.0]]), world.tile([[1.0, 1.0]])
    dst, predicate = world.new((1, 2), space="psum"), world.tile([[1, 0]], "uint8")
    nisa.nc_matmul(dst, one, row)
    nisa.tensor_copy_predicated(dst, world.tile([[5.0, 5.0]]), predicate)

    nisa.nc_matmul(dst, one, row)

    assert dst.array.tolist() == [[1, 2]]


@pytest.mark.parametrize("mode", ["ignore", "warn", "error"])
@pytest.mark.parametrize(("position", "size"), [((0, 64), (128, 64)), ((64, 0), (64, 128))])
def test_what_is_said_to_tiles_of_columns_is_an_option(make_world, nisa, mode, position, size):
    world = make_world(options=Options(column_tiling=mode))
    x, dst = world.tile(np.ones((8, 2))), world.new((2, 2), space="psum")
    says = {"ignore": nullcontext(), "warn": pytest.warns(KernelWarning, match="tiles columns"),
            "error": pytest.raises(AttributeValueError, match="tiles columns")}  # fmt: skip

    with says[mode] if size[1] != 128 else nullcontext():
        nisa.nc_matmul(dst, x, x, tile_position=position, tile_size=size)

    if mode != "error" or size[1] == 128:
        assert dst.array.tolist() == [[8, 8], [8, 8]]


def test_a_new_tensor_starts_unwritten_on_any_earlier_contents(world, nisa, ones):
    for _ in range(2):
        dst = world.new((2, 2), space="psum")
        nisa.nc_matmul(dst, *ones)

        assert dst.array.tolist() == [[1, 1], [1, 1]]


def test_gen4_accumulates_bfloat16_through_float32(make_world, nisa, rounded):
    world = make_world("trn3")
    dst, left = world.new((1, 1), "bfloat16", "psum"), world.tile([[256.0]])

    nisa.nc_matmul(dst, left, world.tile([[1.0]]))
    nisa.nc_matmul(dst, world.tile([[1.0]]), world.tile([[1.0]]))

    assert float(dst.array.item()) == rounded(257.0, "bfloat16") == 256


# -- modes ----------------------------------------------------------------------------------------


def test_double_row_contracts_two_rows_a_partition(world, nisa, rng):
    left, right = whole(rng, (8, 2, 3)), whole(rng, (8, 2, 5))
    dst = world.new((3, 5), space="psum")

    nisa.nc_matmul(
        dst, world.tile(left, "float8_e4m3"), world.tile(right, "float8_e5m2"),
        perf_mode=MatmulPerfMode.double_row,
    )  # fmt: skip

    np.testing.assert_array_equal(dst.array, np.einsum("ktm,ktn->mn", left, right))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_transpose_mode_moves_bits(world, nisa, dtype):
    data = world.tile([[1.0, np.inf, 3.0], [4.0, 5.0, np.nan]], dtype)
    dst = world.new((3, 2), dtype, "psum")

    nisa.nc_matmul(dst, data, world.tile(np.eye(2), dtype), is_transpose=True)

    assert dst.array.tobytes() == np.ascontiguousarray(data.array.T).tobytes()


def test_transpose_mode_wants_an_identity_of_the_right_size(world, nisa):
    data = world.tile(np.ones((2, 3)))

    with pytest.raises(ShapeError, match="moving"):
        nisa.nc_matmul(
            world.new((3, 4), space="psum"), data, world.tile(np.ones((2, 4))), is_transpose=True
        )
    with pytest.raises(UnsupportedError, match="moving is not an identity matrix"):
        nisa.nc_matmul(
            world.new((3, 2), space="psum"), data, world.tile(np.ones((2, 2))), is_transpose=True
        )


def test_before_gen3_the_flag_of_transpose_mode_multiplies(make_world, nisa, rng):
    world = make_world("trn1")
    stationary, moving = rng.standard_normal((4, 3)), rng.standard_normal((4, 5))
    dst = world.new((3, 5), space="psum")

    nisa.nc_matmul(dst, world.tile(stationary), world.tile(moving), is_transpose=True)

    np.testing.assert_allclose(dst.array, stationary.T @ moving, rtol=1e-5, atol=1e-6)


def test_transpose_mode_does_not_accumulate(world, nisa):
    with pytest.raises(AttributeValueError, match="accumulate=True in transpose mode"):
        nisa.nc_matmul(
            world.new((3, 2), space="psum"), world.tile(np.ones((2, 3))), world.tile(np.eye(2)),
            is_transpose=True, accumulate=True,
        )  # fmt: skip


def test_a_legal_pe_tile_changes_nothing(world, nisa, rng):
    left, right = whole(rng, (32, 3)), whole(rng, (32, 5))
    dst = world.new((3, 5), space="psum")

    nisa.nc_matmul(
        dst, world.tile(left), world.tile(right), tile_position=(32, 0), tile_size=(32, 128)
    )

    np.testing.assert_array_equal(dst.array, product(left, right))


@pytest.mark.parametrize(
    ("position", "size"),
    [((0, 0), ()), ((16, 0), (32, 128)), ((0, 0), (48, 128)), ((128, 0), (32, 128)), ((0,), (32,))],
)
def test_other_pe_tiles_are_rejected(world, nisa, position, size):
    with pytest.raises(AttributeValueError, match="tile_position"):
        nisa.nc_matmul(
            world.new((2, 2), space="psum"), world.tile(np.ones((8, 2))),
            world.tile(np.ones((8, 2))), tile_position=position, tile_size=size,
        )  # fmt: skip


# -- what is rejected ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right"),
    [("float32", "bfloat16"), ("float8_e4m3", "float8_e4m3fn"), ("float8_e4m3fn", "bfloat16")],
)
def test_pairs_of_dtypes_that_do_not_go_together(world, nisa, left, right):
    with pytest.raises(DTypeError):
        nisa.nc_matmul(
            world.new((2, 2), space="psum"), world.tile(np.ones((8, 2)), left),
            world.tile(np.ones((8, 2)), right),
        )  # fmt: skip


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "bool_", "float8_e8m0fnu"])
def test_only_floats_multiply(world, nisa, dtype):
    x = world.tile(np.ones((8, 2)), dtype)

    with pytest.raises(DTypeError, match=f"stationary is {dtype}"):
        nisa.nc_matmul(world.new((2, 2), space="psum"), x, x)


def test_a_result_beyond_one_bank(world, nisa):
    wide = world.tile(np.ones((8, 600)))

    with pytest.raises(ShapeError) as raised:
        nisa.nc_matmul(world.new((2, 600), space="psum"), world.tile(np.ones((8, 2))), wide)

    assert "also: dst reaches byte 2400 of a PSUM bank" in str(raised.value)


def test_gen4_writes_every_bank(make_world, nisa):
    world = make_world("trn3")
    dst = world.new((2, 4096), space="psum")

    nisa.nc_matmul(dst, world.tile(np.ones((8, 2))), world.tile(np.ones((8, 4096))))

    assert (dst.array == 8).all()


@pytest.mark.parametrize(("version", "most"), [("0.4", 4096), ("0.5", 8192)])
def test_twice_as_many_16_bit_results_came_with_05(make_world, version, most):
    world, found = make_world("trn3"), signature("nc_matmul", version)
    assert found is not None
    matmul = make_function(INSTRUCTIONS["nc_matmul"], found)
    left = world.tile(np.ones((1, 2)), "bfloat16")

    def run(columns):
        dst = world.new((2, most), "bfloat16", "psum")
        matmul(dst, left, world.tile(np.ones((1, columns)), "bfloat16"))

    run(most)
    with pytest.raises(ShapeError, match=f"moving free size {most + 1} exceeds {most}"):
        run(most + 1)


def test_psum_is_the_only_destination(world, nisa):
    x = world.tile(np.ones((8, 2)))

    with pytest.raises(MemorySpaceError, match="dst is in SBUF"):
        nisa.nc_matmul(world.new((2, 2)), x, x)


def test_more_than_psum_cannot_be_allocated(world):
    with pytest.raises(CapacityError, match="16388 bytes per partition do not fit PSUM"):
        world.new((128, 4097), space="psum")
