"""dma_compute against float64 sums."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from neuroncore.enums import OobMode
from neuroncore.errors import (
    AccessError,
    AttributeValueError,
    MemorySpaceError,
    ShapeError,
    SignatureError,
)
from neuroncore.program import emit, parse_program

DTYPES = ("float32", "bfloat16", "float16", "int8", "uint16", "float8_e5m2")


@pytest.mark.parametrize("count", [1, 2, 3, 16])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("space", ["hbm", "sbuf"])
def test_sources_are_added_in_float32_and_rounded_once(
    world, nisa, rng, values, rounded, count, dtype, space
):
    exact = rng.integers(0, 16, (count, 4, 6)) / (4 if dtype.startswith(("f", "b")) else 1)
    sources = [world.tile(e, dtype, space) for e in exact]
    dst = world.new((4, 6), dtype)

    nisa.dma_compute(dst, sources, "add")

    np.testing.assert_array_equal(values(dst), rounded(sum(map(values, sources)), dtype))


def test_dtypes_and_shapes_may_differ(world, nisa, values):
    dst = world.new((2, 3, 2), "bfloat16", "hbm")
    parts = [world.tile(np.arange(12.0).reshape(shape), dtype, space) for shape, dtype, space in
             (((4, 3), "int32", "hbm"), ((12, 1), "float32", "sbuf"))]  # fmt: skip

    nisa.dma_compute(dst, parts, "add", scales=[1.0, 1.0])

    assert values(dst).ravel().tolist() == (2 * np.arange(12.0)).tolist()


def test_a_source_may_be_the_destination(world, nisa, values):
    t, x = world.tile([[1.0, 2.0]], space="hbm"), world.tile([[10.0, 20.0]], space="hbm")

    nisa.dma_compute(t, (t, x), "add")

    assert values(t).tolist() == [[11, 22]]


# -- read, modify, write --------------------------------------------------------------------------


def rows_of(world, indices):
    return world.tile(np.reshape(indices, (-1, 1)), "int32")


def gather(table, index, width):
    return table.ap([[width, index.shape[0]], [1, width]], vector_offset=index)


def test_gathered_rows_are_added_to_a_tile(world, nisa, rng, values):
    exact, own = rng.integers(-9, 9, (7, 5)), rng.integers(-9, 9, (4, 5))
    table, dst = world.tile(exact, space="hbm"), world.tile(own, "bfloat16")
    picked = [6, 0, 6, 3]

    nisa.dma_compute(dst, [gather(table, rows_of(world, picked), 5), dst], "add")

    assert values(dst).tolist() == (own + exact[picked]).tolist()


@pytest.mark.parametrize("first", [True, False])
def test_rows_are_added_to_those_that_an_index_names(world, nisa, rng, values, first):
    exact, more = rng.integers(-9, 9, (7, 5)), rng.integers(-9, 9, (3, 5))
    table, src = world.tile(exact, "bfloat16", "hbm"), world.tile(more)
    picked = [5, 1, 0]
    there = gather(table, rows_of(world, picked), 5)

    nisa.dma_compute(there, [there, src] if first else [src, there], "add")

    exact[picked] += more
    assert values(table).tolist() == exact.tolist()


@pytest.mark.parametrize("scatters", [True, False])
def test_rows_out_of_bounds_are_rejected_or_left_as_they_are(world, nisa, values, scatters):
    table, tile = world.tile(np.full((3, 2), 5.0), space="hbm"), world.tile(np.ones((3, 2)))
    there = gather(table, rows_of(world, [2, 3, -1]), 2)
    given = (there, [there, tile]) if scatters else (tile, [tile, there])

    with pytest.raises(AccessError, match="row 1 is 3"):
        nisa.dma_compute(*given, "add")
    nisa.dma_compute(*given, "add", oob_mode=OobMode.skip)

    if scatters:
        assert values(table).tolist() == [[5, 5], [5, 5], [6, 6]]
    else:
        assert values(tile).tolist() == [[6, 6], [1, 1], [1, 1]]


def test_a_row_that_is_named_twice_is_rejected(world, nisa):
    table, tile = world.tile(np.zeros((3, 2)), space="hbm"), world.tile(np.ones((2, 2)))
    there = gather(table, rows_of(world, [1, 1]), 2)

    with pytest.raises(AccessError, match="the index names row 1 twice"):
        nisa.dma_compute(there, [there, tile], "add")


def test_the_source_that_is_read_back_is_the_destination(world, nisa):
    table, other = (world.tile(np.zeros((3, 2)), space="hbm") for _ in range(2))
    tile, index = world.tile(np.ones((2, 2))), rows_of(world, [0, 1])

    with pytest.raises(AccessError, match="src0 is another part of memory than dst"):
        nisa.dma_compute(gather(table, index, 2), [gather(other, index, 2), tile], "add")
    with pytest.raises(AccessError, match="src1 is another part of memory than dst"):
        nisa.dma_compute(tile, [gather(table, index, 2), world.tile(np.ones((2, 2)))], "add")


@pytest.mark.parametrize("case", ["three", "both", "hbm", "not unique"])
def test_other_forms_with_an_index_are_rejected(world, nisa, case):
    table, tile = world.tile(np.zeros((3, 2)), space="hbm"), world.tile(np.ones((2, 2)))
    there = gather(table, rows_of(world, [0, 1]), 2)
    far = world.tile(np.ones((2, 2)), space="hbm")
    dst, sources = {
        "three": (tile, [tile, there, tile]),
        "both": (tile, [there, there]),
        "hbm": (far, [far, there]),
        "not unique": (tile, [tile, there]),
    }[case]

    with pytest.raises(AttributeValueError if case == "not unique" else AccessError):
        nisa.dma_compute(dst, sources, "add", unique_indices=case != "not unique")


# -- limits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "more", "error", "message"),
    [
        (16, {}, None, ""),
        (17, {}, SignatureError, "srcs is not a list of operands"),
        (0, {}, SignatureError, "srcs is not a list of operands"),
        (2, {"scales": [1.0, 1.0]}, None, ""),
        (2, {"scales": [1.0, 0.5]}, AttributeValueError, "scales"),
        (2, {"scales": [1.0]}, AttributeValueError, "scales"),
        (2, {"reduce_op": "multiply"}, AttributeValueError, "reduce_op multiply"),
        (2, {"oob_mode": OobMode.skip}, AttributeValueError, "oob_mode skip without an index"),
    ],
)
def test_what_it_takes(world, nisa, count, more, error, message):
    sources = [world.tile(np.ones((2, 2))) for _ in range(count)]
    given = {"dst": world.new((2, 2)), "srcs": sources, "reduce_op": "add", **more}

    if error is None:
        nisa.dma_compute(**given)
        return
    with pytest.raises(error, match=message):
        nisa.dma_compute(**given)


def test_sizes_and_memories(world, nisa):
    x = world.tile(np.ones((2, 2)))

    with pytest.raises(ShapeError, match="src1 has 6 elements, dst 4"):
        nisa.dma_compute(world.new((2, 2)), [x, world.tile(np.ones((2, 3)))], "add")
    with pytest.raises(MemorySpaceError, match="src0 is in PSUM"):
        nisa.dma_compute(world.new((2, 2)), [world.new((2, 2), space="psum")], "add")


def test_an_address_that_the_device_computes_is_rejected(world, nisa):
    table, dst = world.tile(np.ones((3, 2)), space="hbm"), world.new((1, 2))
    row = table.ap([[2, 1], [1, 2]], scalar_offset=rows_of(world, [1]))

    with pytest.raises(AccessError, match="an address is computed on the device"):
        nisa.dma_compute(dst, [row], "add")


@pytest.mark.parametrize("given", ["x", None, 5])
def test_sources_are_a_list(world, nisa, given):
    with pytest.raises(SignatureError, match="srcs is not a list of operands") as raised:
        nisa.dma_compute(world.new((2, 2)), given, "add")
    assert "1 to 16 tensors" in str(raised.value)


def test_what_is_missing_is_said(world, nisa):
    with pytest.raises(SignatureError, match="argument 'reduce_op' is missing"):
        nisa.dma_compute(world.new((2, 2)), [world.new((2, 2))])


def test_in_02_the_scales_come_before_the_operation(world, nisa_02, values):
    dst = world.new((1, 1))

    nisa_02.dma_compute(dst, [world.tile([[2.0]])], [1.0], "add")

    assert values(dst).item() == 2
    assert list(inspect.signature(nisa_02.dma_compute).parameters) == [
        "dst", "srcs", "scales", "reduce_op", "name",
    ]  # fmt: skip


PROGRAM = """\
program("trn2", "0.6")
def p(x: float32[4, 8], y: float32[4, 8]):
    out = buffer(float32[4, 8], shared_hbm)
    dma_compute(dst=out[:, :], src0=x[:, :], src1=y[:, :], reduce_op="add")
    return out
"""


def test_programs_write_the_list_again():
    source = emit(parse_program(PROGRAM))

    assert "nisa.dma_compute(out, [x, y], reduce_op=nl.add)" in source
