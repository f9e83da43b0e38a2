"""Memory that nothing has written: poison, and when it is spared."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import MemorySpace, OobMode
from neuroncore.errors import CapacityError, DTypeError, PartitionError, ShapeError
from neuroncore.options import Options

FLOATS = ("float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e5m2")


@pytest.mark.parametrize("space", ["sbuf", "psum", "hbm"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_new_floats_are_nan(world, values, dtype, space):
    assert np.isnan(values(world.new((4, 8), dtype, space))).all()


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint16", "bool_", "float8_e4m3fn_x4"])
def test_new_integers_are_four(world, values, dtype):
    assert (values(world.new((4, 8), dtype)) == 4).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_or_zero_where_that_is_asked_for(make_world, values, dtype):
    world = make_world(options=Options(uninitialized="zero"))

    assert (values(world.new((4, 8), dtype)) == 0).all()


def test_a_partly_written_tile_keeps_nan_elsewhere(world, nisa):
    t = world.new((4, 8))

    nisa.memset(t[:, 2:4], 1.0)

    assert (t.array[:, 2:4] == 1).all()
    assert np.isnan(t.array[:, :2]).all() and np.isnan(t.array[:, 4:]).all()


def test_reading_new_memory_reads_the_poison(world, nisa):
    dst = world.tile(np.zeros((4, 8)))

    nisa.tensor_copy(dst, world.new((4, 8)))

    assert np.isnan(dst.array).all()


def test_an_instruction_that_writes_all_of_it_spares_the_poison(world, nisa):
    t = world.new((4, 8))

    nisa.memset(t, 1.0)

    assert not t.spec.fresh and not t.storage.fresh
    assert (t.array == 1).all()


def test_new_memory_that_is_source_and_destination_is_poisoned(world, nisa):
    t = world.new((4, 8))

    nisa.tensor_tensor(t, t, t, "add")

    assert np.isnan(t.array).all()


def test_a_copy_that_may_skip_rows_poisons_first(world, nisa):
    table, index = world.tile(np.ones((2, 4)), space="hbm"), world.tile([[0], [7]], "int32")
    dst = world.new((2, 4))

    nisa.dma_copy(dst, table.ap([[4, 2], [1, 4]], vector_offset=index), oob_mode=OobMode.skip)

    assert (dst.array[0] == 1).all()
    assert np.isnan(dst.array[1]).all()


def test_plans_for_fresh_and_written_memory_do_not_mix(world, nisa):
    for _ in range(3):
        t = world.new((4, 8))
        nisa.memset(t, 1.0)
        nisa.memset(t[0:4, 0:4], 2.0)
        nisa.tensor_tensor(t, t, t, "add")
        assert t.array.sum() == 4 * (4 * 4 + 4 * 2)


def test_every_view_of_new_memory_sees_the_same_elements(world, nisa):
    t = world.new((4, 8))
    left, flat = t[:, 0:4], t.reshape((4, 2, 4))

    nisa.memset(t, 3.0)

    assert (left.array == 3).all() and (flat.array == 3).all()


# -- what can exist -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "space", "error"),
    [
        ((129, 1), "sbuf", PartitionError),
        ((128,), "sbuf", ShapeError),
        ((128, 0), "sbuf", ShapeError),
        ((4, -1), "hbm", ShapeError),
        ((4, 1.5), "hbm", ShapeError),
        ("abc", "hbm", ShapeError),
        ((128, 4097), "psum", CapacityError),
        ((128, 224 * 256 + 1), "sbuf", CapacityError),
    ],
)
def test_tensors_that_cannot_exist(world, shape, space, error):
    with pytest.raises(error):
        world.core.allocate(shape, "float32", MemorySpace[space])


def test_the_usable_sbuf_is_an_option(make_world):
    world = make_world(options=Options(usable_sbuf_bytes=64))

    assert world.new((128, 16)).shape == (128, 16)
    with pytest.raises(CapacityError, match="68 bytes per partition do not fit SBUF"):
        world.new((128, 17))


@pytest.mark.parametrize("dtype", ["float64", "int64", "bf17", None])
def test_unknown_dtypes(world, dtype):
    with pytest.raises(DTypeError):
        world.core.allocate((4, 8), dtype, MemorySpace.sbuf)


@pytest.mark.parametrize(
    ("address", "space", "error"),
    [
        ((16, 0), "sbuf", PartitionError),
        ((96, 0), "sbuf", PartitionError),
        ((0, 100), "psum", CapacityError),
        ((0, 16 * 1024), "psum", CapacityError),
    ],
)
def test_addresses_that_hardware_does_not_have(world, address, space, error):
    with pytest.raises(error):
        world.core.allocate((64, 8), "float32", MemorySpace[space], address=address)


def test_low_precision_can_be_kept_as_float32(make_world, nisa):
    world = make_world(options=Options(precise=False))
    dst = world.core.allocate((1, 1), "bfloat16", MemorySpace.sbuf)

    nisa.memset(dst, 1 + 2.0**-20)

    assert dst.array.dtype == np.float32
    assert dst.array.item() == 1 + 2.0**-20
