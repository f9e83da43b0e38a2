"""dma_copy: pairing, casts, computed addresses, out of bounds, and the rules by version."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import DgeMode, Engine, OobMode
from neuroncore.errors import (
    AccessError,
    AttributeValueError,
    DTypeError,
    EngineError,
    MemorySpaceError,
    ShapeError,
    UnsupportedError,
)
from neuroncore.options import Options

NUMERIC = (
    "float32", "tfloat32", "bfloat16", "float16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2",
    "int8", "int16", "int32", "uint8", "uint16", "uint32",
)  # fmt: skip
SPACES = ("hbm", "sbuf", "shared_hbm", "private_hbm")


@pytest.mark.parametrize("to", SPACES)
@pytest.mark.parametrize("from_", SPACES)
def test_every_pair_of_memories_that_dma_reaches(world, nisa, from_, to):
    src, dst = world.tile(np.arange(32).reshape(4, 8), space=from_), world.new((4, 8), space=to)

    nisa.dma_copy(dst, src)

    np.testing.assert_array_equal(dst.array, src.array)


@pytest.mark.parametrize("to", NUMERIC)
@pytest.mark.parametrize("from_", NUMERIC)
def test_values_are_converted_through_float32(world, nisa, rng, values, rounded, from_, to):
    src = world.tile(np.abs(rng.normal(0, 99, (4, 6))).round(1), from_, "hbm")
    dst = world.new((4, 6), to)

    nisa.dma_copy(dst, src)

    through = values(src) if from_ == to else rounded(values(src), "float32")
    np.testing.assert_array_equal(values(dst), rounded(through, to))


def test_elements_pair_in_row_major_order_of_both_patterns(world, nisa):
    src, dst = world.tile(np.arange(64).reshape(8, 8), space="hbm"), world.new((4, 2, 4))

    nisa.dma_copy(dst, src[0:8:2, :])

    np.testing.assert_array_equal(dst.array.reshape(-1), src.array[::2].reshape(-1))


def test_a_transposing_access_pattern(world, nisa):
    src, dst = world.tile(np.arange(12).reshape(3, 4), space="hbm"), world.new((4, 3))

    nisa.dma_copy(dst, src.ap([[1, 4], [4, 3]]))

    np.testing.assert_array_equal(dst.array, src.array.T)


def test_a_copy_within_one_tensor_reads_before_it_writes(world, nisa):
    t = world.tile(np.arange(8), space="hbm")

    nisa.dma_copy(t[1:8], t[0:7])

    assert t.array.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]


def test_counts_must_agree(world, nisa):
    with pytest.raises(ShapeError, match="src has 36 elements, dst 32"):
        nisa.dma_copy(world.new((4, 8)), world.tile(np.ones((4, 9)), space="hbm"))


def test_psum_was_a_source_up_to_02_and_never_a_destination(world, nisa, nisa_02):
    psum, dst = world.tile(np.ones((4, 8)), space="psum"), world.new((4, 8))

    nisa_02.dma_copy(dst, psum)
    assert (dst.array == 1).all()
    with pytest.raises(MemorySpaceError, match="src is in PSUM"):
        nisa.dma_copy(dst, psum)
    with pytest.raises(MemorySpaceError, match="dst is in PSUM"):
        nisa_02.dma_copy(psum, dst)


# -- gather and scatter ---------------------------------------------------------------------------


@pytest.fixture
def table(world):
    """(6, 4) rows in HBM: row r holds 10 r … 10 r + 3."""
    return world.tile(10 * np.arange(6).reshape(6, 1) + np.arange(4), space="hbm")


def rows(world, *numbers, dtype="int32"):
    return world.tile(np.array(numbers, np.int64).reshape(-1, 1), dtype)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
def test_gather_takes_one_row_per_index(world, nisa, table, dtype):
    dst, index = world.new((3, 4)), rows(world, 5, 0, 5, dtype=dtype)

    nisa.dma_copy(dst, table.ap([[4, 3], [1, 4]], vector_offset=index))

    assert dst.array.tolist() == [[50, 51, 52, 53], [0, 1, 2, 3], [50, 51, 52, 53]]


def test_gather_of_part_of_each_row(world, nisa, table):
    dst = world.new((2, 2))

    nisa.dma_copy(dst, table.ap([[4, 2], [2, 2]], offset=1, vector_offset=rows(world, 3, 1)))

    assert dst.array.tolist() == [[31, 33], [11, 13]]


def test_scatter_writes_one_row_per_index_and_leaves_the_others(world, nisa, table):
    src = world.tile(-np.ones((2, 4)))

    nisa.dma_copy(table.ap([[4, 2], [1, 4]], vector_offset=rows(world, 4, 1)), src)

    assert (table.array[[1, 4]] == -1).all()
    assert table.array[[0, 2, 3, 5], 0].tolist() == [0, 20, 30, 50]


def test_gather_reads_the_index_anew_at_every_call(world, nisa, table):
    dst, index = world.new((1, 4)), rows(world, 1)
    source = table.ap([[4, 1], [1, 4]], vector_offset=index)
    nisa.dma_copy(dst, source)
    nisa.memset(index, 2)

    nisa.dma_copy(dst, source)

    assert dst.array.tolist() == [[20, 21, 22, 23]]


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
def test_gather_and_scatter_convert(world, nisa, table, dtype):
    dst, out = world.new((2, 4), dtype), world.tile(np.zeros((6, 4)), dtype, "hbm")
    index = rows(world, 2, 0)

    nisa.dma_copy(dst, table.ap([[4, 2], [1, 4]], vector_offset=index))
    nisa.dma_copy(out.ap([[4, 2], [1, 4]], vector_offset=index), table[4:6, :])

    assert dst.array.astype(int).tolist() == [[20, 21, 22, 23], [0, 1, 2, 3]]
    assert out.array[[2, 0]].astype(int).tolist() == [[40, 41, 42, 43], [50, 51, 52, 53]]


@pytest.mark.parametrize("bad", [6, -1, 2**31 - 1])
def test_a_row_out_of_bounds_is_an_error(world, nisa, table, bad):
    source = table.ap([[4, 2], [1, 4]], vector_offset=rows(world, 0, bad))

    with pytest.raises(AccessError, match=f"vector_offset row 1 is {bad}"):
        nisa.dma_copy(world.new((2, 4)), source)


@pytest.mark.parametrize("bad", [6, -1])
def test_or_is_skipped_and_its_destination_keeps_its_value(world, nisa, table, bad):
    dst, index = world.tile(np.full((2, 4), 7)), rows(world, bad, 1)

    nisa.dma_copy(dst, table.ap([[4, 2], [1, 4]], vector_offset=index), oob_mode=OobMode.skip)
    nisa.dma_copy(
        table.ap([[4, 2], [1, 4]], vector_offset=index), world.tile(np.zeros((2, 4))),
        oob_mode=OobMode.skip,
    )  # fmt: skip

    assert dst.array.tolist() == [[7, 7, 7, 7], [10, 11, 12, 13]]
    assert table.array[:, 0].tolist() == [0, 0, 20, 30, 40, 50]


def test_a_gather_that_scatters_skips_rows_of_either_side(world, nisa, table):
    out = world.tile(np.full((3, 4), -1), space="hbm")
    source = table.ap([[4, 4], [1, 4]], vector_offset=rows(world, 1, 9, 2, 3))
    target = out.ap([[4, 4], [1, 4]], vector_offset=rows(world, 0, 1, 5, 2))

    nisa.dma_copy(target, source, oob_mode=OobMode.skip)

    assert out.array[:, 0].tolist() == [10, -1, 30]


def test_skipping_does_not_round_integers(world, nisa):
    big = 2**24 + 1
    ints = world.tile([[big], [big]], "int32", "hbm")
    dst = world.tile([[big], [0]], "int32")

    nisa.dma_copy(
        dst, ints.ap([[1, 2], [1, 1]], vector_offset=rows(world, 9, 0)), oob_mode=OobMode.skip
    )

    assert dst.array.tolist() == [[big], [big]]


def test_a_row_that_runs_past_the_end_of_the_tensor_is_an_error(world, nisa, table):
    source = table.ap([[4, 1], [1, 8]], vector_offset=rows(world, 5))

    with pytest.raises(AccessError, match="outside"):
        nisa.dma_copy(world.new((1, 8)), source)


def test_gather_where_low_precision_is_kept_as_float32(make_world, nisa):
    world = make_world(options=Options(precise=False))
    src = world.core.allocate((4, 2), "bfloat16", world.new((1, 1), space="hbm").buffer)
    nisa.dma_copy(src, world.tile(np.arange(8).reshape(4, 2) + 2.0**-12, space="hbm"))
    dst = world.new((1, 2))

    nisa.dma_copy(dst, src.ap([[2, 1], [1, 2]], vector_offset=rows(world, 3)))

    assert dst.array.tolist() == [[6 + 2.0**-12, 7 + 2.0**-12]]


# -- scalar offsets -------------------------------------------------------------------------------


def test_a_scalar_offset_moves_the_whole_access(world, nisa, table):
    dst = world.new((2, 4))

    nisa.dma_copy(dst, table.ap([[4, 2], [1, 4]], scalar_offset=rows(world, 3)))

    assert dst.array[:, 0].tolist() == [30, 40]


def test_a_scalar_offset_counts_indices_of_its_dimension(world, nisa, table):
    dst = world.new((2, 2))

    nisa.dma_copy(dst, table.ap([[4, 2], [1, 2]], scalar_offset=rows(world, 1), indirect_dim=1))

    assert dst.array.tolist() == [[1, 2], [11, 12]]


def test_a_scalar_offset_works_for_every_instruction(world, nisa):
    t, dst = world.tile(np.arange(12).reshape(2, 6)), world.new((2, 2))

    nisa.tensor_copy(dst, t.ap([[6, 2], [1, 2]], scalar_offset=rows(world, 3), indirect_dim=1))

    assert dst.array.tolist() == [[3, 4], [9, 10]]


@pytest.mark.parametrize("index", [6, -1])
def test_a_scalar_offset_out_of_bounds_is_an_error_or_skipped(world, nisa, table, index):
    source = table.ap([[4, 1], [1, 4]], scalar_offset=rows(world, index))
    dst = world.tile(np.full((1, 4), 7))

    with pytest.raises(AccessError, match=f"scalar_offset is {index}"):
        nisa.dma_copy(dst, source)
    nisa.dma_copy(dst, source, oob_mode=OobMode.skip)
    assert (dst.array == 7).all()


def test_a_scalar_offset_may_not_push_the_access_past_the_end(world, nisa, table):
    source = table.ap([[4, 2], [1, 4]], scalar_offset=rows(world, 5))

    with pytest.raises(AccessError, match="moves the access outside"):
        nisa.dma_copy(world.new((2, 4)), source)


def test_nor_into_the_next_partition(world, nisa):
    t = world.tile(np.arange(12).reshape(2, 6))
    source = t.ap([[6, 1], [1, 4]], scalar_offset=rows(world, 3), indirect_dim=1)

    with pytest.raises(AccessError, match="next partition"):
        nisa.tensor_copy(world.new((1, 4)), source)


# -- accumulating copies (0.2) --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_02_may_add_into_the_destination(world, nisa_02, values, dtype):
    dst = world.tile([[1, 2]], dtype, "hbm")

    nisa_02.dma_copy(dst, world.tile([[10, 20]]), "add")

    assert values(dst).tolist() == [[11, 22]]


def test_rows_that_meet_add_up(world, nisa_02, table):
    nisa_02.dma_copy(
        table.ap([[4, 3], [1, 4]], vector_offset=rows(world, 2, 2, 0)),
        world.tile(np.ones((3, 4))), dst_rmw_op="add",
    )  # fmt: skip

    assert table.array[:3, 0].tolist() == [1, 10, 22]


def test_other_read_modify_writes_are_rejected(world, nisa_02, table):
    with pytest.raises(AttributeValueError, match="dst_rmw_op maximum"):
        nisa_02.dma_copy(table, world.tile(np.ones((6, 4))), "maximum")


# -- descriptor generation and triggers -----------------------------------------------------------

HW = DgeMode.hwdge


@pytest.mark.parametrize(
    ("target", "mode", "dtype", "error"),
    [
        ("trn1", HW, "float32", UnsupportedError),
        ("trn2", HW, "float32", None),
        ("trn2", HW, "bfloat16", DTypeError),
        ("trn2", DgeMode.swdge, "bfloat16", None),
        ("trn2", DgeMode.none, "float32", None),
    ],
)
def test_hardware_descriptors_need_gen3_and_equal_dtypes(
    make_world, nisa, target, mode, dtype, error
):
    world = make_world(target)
    dst, src = world.new((4, 8), dtype), world.tile(np.ones((4, 8)), space="hbm")

    if error:
        with pytest.raises(error):
            nisa.dma_copy(dst, src, dge_mode=mode)
    else:
        nisa.dma_copy(dst, src, dge_mode=mode)
        assert (dst.array == 1).all()


def test_02_hardware_descriptors_convert(world, nisa_02):
    dst = world.new((4, 8), "bfloat16")

    nisa_02.dma_copy(dst, world.tile(np.ones((4, 8)), space="hbm"), dge_mode=HW)

    assert (dst.array == 1).all()


@pytest.mark.parametrize("mode", [HW, DgeMode.none])
def test_gathers_take_software_descriptors_only(world, nisa, table, mode):
    source = table.ap([[4, 2], [1, 4]], vector_offset=rows(world, 0, 1))

    with pytest.raises(AttributeValueError, match=f"{mode.name} does not take a vector offset"):
        nisa.dma_copy(world.new((2, 4)), source, dge_mode=mode)


def test_no_descriptor_generation_needs_static_addresses(world, nisa, table):
    source = table.ap([[4, 2], [1, 4]], scalar_offset=rows(world, 1))

    nisa.dma_copy(world.new((2, 4)), source, dge_mode=HW)
    with pytest.raises(AttributeValueError, match="dge_mode none needs static addresses"):
        nisa.dma_copy(world.new((2, 4)), source, dge_mode=DgeMode.none)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"engine": Engine.sync, "dge_mode": HW}, None),
        ({"engine": Engine.scalar, "dge_mode": HW}, None),
        ({"engine": Engine.sync}, AttributeValueError),
        ({"engine": Engine.vector, "dge_mode": HW}, EngineError),
        ({"priority": 0}, AttributeValueError),
    ],
)
def test_triggers_and_priorities(world, nisa, given, error):
    dst, src = world.new((4, 8)), world.tile(np.ones((4, 8)), space="hbm")

    if error:
        with pytest.raises(error):
            nisa.dma_copy(dst, src, **given)
    else:
        nisa.dma_copy(dst, src, **given)


@pytest.mark.parametrize(("priority", "legal"), [(0, True), (3, True), (4, False), (-1, False)])
def test_gen4_has_four_priorities(make_world, nisa, priority, legal):
    world = make_world("trn3")
    dst, src = world.new((4, 8)), world.tile(np.ones((4, 8)), space="hbm")

    if legal:
        nisa.dma_copy(dst, src, priority)
    else:
        with pytest.raises(AttributeValueError, match=f"priority {priority}"):
            nisa.dma_copy(dst, src, priority)
