"""tensor_partition_reduce and nc_stream_shuffle against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import AccessError, AttributeValueError, MemorySpaceError, PartitionError
from neuroncore.instructions import KernelWarning
from neuroncore.options import Options

SWAP = [i ^ 1 for i in range(32)]
BITS = {"bitwise_or": np.bitwise_or, "bitwise_and": np.bitwise_and}


# -- tensor_partition_reduce ----------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [1, 2, 127, 128])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize(("op", "exact"), [("add", np.sum), ("maximum", np.max)])
def test_partitions_are_reduced_to_one(
    world, nisa, rng, values, rounded, partitions, dtype, op, exact
):
    data, dst = world.tile(rng.integers(-9, 9, (partitions, 2, 3)), dtype), world.new((1, 6), dtype)

    nisa.tensor_partition_reduce(dst, op, data)

    expected = exact(values(data).reshape(partitions, 6), axis=0)
    np.testing.assert_array_equal(values(dst)[0], rounded(expected, dtype))


@pytest.mark.parametrize("op", BITS)
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint32"])
def test_bits_are_combined_without_conversion(world, nisa, rng, op, dtype):
    raw = rng.integers(0, 2**32, (9, 5), np.uint32).astype(dtype)
    dst = world.new((1, 5), dtype)

    nisa.tensor_partition_reduce(dst, op, world.tile(raw, dtype))

    assert dst.array[0].tolist() == BITS[op].reduce(raw, axis=0).tolist()


def test_an_average_is_the_mean_over_partitions(world, nisa, values):
    dst = world.new((1, 2))

    nisa.tensor_partition_reduce(dst, "average", world.tile([[1.0, 2], [2, 4], [6, 0]]))

    assert values(dst)[0].tolist() == [3, 2]


def test_gpsimd_does_not_reach_psum(world, nisa):
    in_psum = world.tile(np.ones((2, 2)), space="psum")

    with pytest.raises(MemorySpaceError, match="data is in PSUM"):
        nisa.tensor_partition_reduce(world.new((1, 2)), "add", in_psum)


# -- nc_stream_shuffle ----------------------------------------------------------------------------


@pytest.mark.parametrize("quadrants", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_the_same_mask_shuffles_every_quadrant(world, nisa, rng, values, quadrants, dtype):
    mask = rng.integers(0, 32, 32)
    src = world.tile(rng.integers(0, 99, (32 * quadrants, 5)), dtype)
    dst = world.new((32 * quadrants, 5), dtype)

    nisa.nc_stream_shuffle(dst, src, mask.tolist())

    expected = values(src).reshape(quadrants, 32, 5)[:, mask].reshape(-1, 5)
    np.testing.assert_array_equal(values(dst), expected)


def test_255_keeps_what_lies_in_dst_or_its_poison(world, nisa, values):
    mask = [0, 255] * 16
    src, dst = world.tile(np.arange(32.0)[:, None]), world.tile(-np.ones((32, 1)))
    fresh = world.new((32, 1))

    nisa.nc_stream_shuffle(dst, src, mask)
    nisa.nc_stream_shuffle(fresh, src, mask)

    assert values(dst)[:, 0].tolist() == [0, -1] * 16
    np.testing.assert_array_equal(values(fresh)[:, 0], [0, np.nan] * 16)


def test_a_tile_may_be_shuffled_in_place(world, nisa, values):
    tile = world.tile(np.arange(32.0)[:, None])

    nisa.nc_stream_shuffle(tile, tile, SWAP)

    assert values(tile)[:, 0].tolist() == SWAP


@pytest.mark.parametrize("partitions", [1, 5, 31])
def test_fewer_partitions_of_dst_take_the_first_entries(world, nisa, values, partitions):
    src, dst = world.tile(np.arange(32.0)[:, None]), world.new((partitions, 1))

    nisa.nc_stream_shuffle(dst, src, [7] * 32)

    assert values(dst)[:, 0].tolist() == [7] * partitions


def test_a_partition_that_src_lacks_cannot_be_read(world, nisa):
    with pytest.raises(AccessError, match="the mask reads partition 4 of src"):
        nisa.nc_stream_shuffle(world.new((32, 1)), world.tile(np.ones((4, 1))), [4] * 32)


@pytest.mark.parametrize("mask", [[0] * 31, [32] * 32, [-1] * 32, 7, ["a"] * 32])
def test_a_mask_is_32_partitions(world, nisa, mask):
    tile = world.tile(np.ones((32, 1)))

    with pytest.raises(AttributeValueError, match="shuffle_mask is not a list of 32 partitions"):
        nisa.nc_stream_shuffle(tile, tile, mask)


@pytest.mark.parametrize(
    ("mode", "reaction"),
    [
        ("error", pytest.raises(PartitionError, match="src starts at partition 32 with 64")),
        ("warn", pytest.warns(KernelWarning, match="src has 64 partitions and does not start at")),
    ],
)
def test_operands_start_where_all_quadrants_in_use_fit(make_world, nisa, mode, reaction):
    world = make_world(options=Options(start_partition=mode))
    src, dst = world.new((96, 1))[32:64], world.new((64, 1))

    with reaction:
        nisa.nc_stream_shuffle(dst, src, [255] * 32)
