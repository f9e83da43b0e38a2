"""nc_transpose: bits, shapes, and which engine does it in which version."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import Engine
from neuroncore.errors import DTypeError, EngineError, ShapeError
from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.examples import example_call
from nki_dtypes import ALL

RECORD = INSTRUCTIONS["nc_transpose"]


@pytest.mark.parametrize("dtype", [str(d) for d in ALL])
@pytest.mark.parametrize(("p", "f"), [(128, 128), (127, 31), (1, 128), (4, 3)])
def test_every_bit_of_every_dtype_arrives(make_world, nisa, rng, dtype, p, f):
    world = make_world()
    data, dst = world.new((p, f), dtype), world.new((f, p), dtype, "psum")
    data.initialize()
    data.array[...] = (
        rng.integers(0, 256, data.array.nbytes, np.uint8).view(data.array.dtype).reshape(p, f)
    )

    nisa.nc_transpose(dst, data)

    assert dst.array.tobytes() == np.ascontiguousarray(data.array.T).tobytes()


def test_free_dimensions_are_flattened_first(world, nisa, rng):
    x, dst = rng.normal(size=(4, 2, 3)), world.new((6, 4), space="psum")

    nisa.nc_transpose(dst, world.tile(x))

    np.testing.assert_array_equal(dst.array, np.float32(x).reshape(4, 6).T)


def test_a_square_tile_is_transposed_in_place(world, nisa):
    t = world.tile([[1.0, 2.0], [3.0, 4.0]])

    nisa.nc_transpose(t, t)

    assert t.array.tolist() == [[1, 3], [2, 4]]


@pytest.mark.parametrize(
    ("version", "data", "dst", "asked", "engine"),
    [
        ((0, 6), "[32, 32] sbuf", "[32, 32] psum", Engine.unknown, Engine.tensor),
        ((0, 6), "[32, 32] sbuf", "[32, 32] sbuf", Engine.unknown, Engine.vector),
        ((0, 4), "[32, 32] psum", "[32, 32] sbuf", Engine.unknown, Engine.vector),
        ((0, 6), "[32, 32] sbuf", "[32, 32] psum", Engine.vector, Engine.vector),
        ((0, 4), "[32, 32] psum", "[32, 32] psum", Engine.unknown, Engine.tensor),
        ((0, 3), "[32, 32] psum", "[32, 32] psum", Engine.unknown, Engine.vector),
        ((0, 3), "[64, 64] sbuf", "[64, 64] psum", Engine.vector, Engine.tensor),
        ((0, 2), "[32, 32] sbuf", "[32, 32] sbuf", Engine.tensor, Engine.vector),
        ((0, 1), "[32, 32] sbuf", "[32, 32] psum", Engine.vector, Engine.vector),
    ],
    ids=lambda v: ".".join(map(str, v)) if isinstance(v, tuple) else str(v),
)
def test_the_engine_follows_dst_from_04_on_and_the_shape_before(version, data, dst, asked, engine):
    call = example_call(
        RECORD, RECORD.examples[0], version=version, data=f"float32{data}", dst=f"float32{dst}",
        engine=asked,
    ).call  # fmt: skip

    assert call.engine is engine


@pytest.mark.parametrize(
    ("error", "data", "dst", "engine"),
    [
        (ShapeError, (33, 4), (4, 33), Engine.vector),
        (ShapeError, (4, 33), (33, 4), Engine.vector),
        (ShapeError, (4, 129), (128, 4), Engine.tensor),
        (ShapeError, (4, 3), (4, 3), Engine.vector),
        (EngineError, (4, 3), (3, 4), Engine.tensor),
        (EngineError, (4, 3), (3, 4), Engine.scalar),
    ],
)
def test_what_an_engine_cannot_transpose(world, nisa, error, data, dst, engine):
    with pytest.raises(error):
        nisa.nc_transpose(world.new(dst), world.tile(np.ones(data)), engine)


def test_dtypes_do_not_change(world, nisa):
    with pytest.raises(DTypeError, match="dst is bfloat16, data float32"):
        nisa.nc_transpose(world.new((3, 4), "bfloat16", "psum"), world.tile(np.ones((4, 3))))


def test_a_tensor_engine_transpose_starts_an_accumulation_group(world, nisa):
    one, dst = world.tile([[1.0]]), world.new((1, 1), space="psum")

    nisa.nc_transpose(dst, world.tile([[5.0]]))
    nisa.nc_matmul(dst, one, one, accumulate=True)

    assert dst.array.item() == 6


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
@pytest.mark.parametrize("width", [128, 129, 512, 3072])
def test_rows_of_a_wider_tile_are_transposed(make_world, nisa, rng, dtype, width):
    world = make_world()
    wide, dst = world.new((128, width), dtype), world.new((128, 128), dtype, "psum")
    wide.initialize()
    wide.array[...] = (
        rng.integers(0, 256, wide.array.nbytes, np.uint8).view(wide.array.dtype).reshape(128, width)
    )

    nisa.nc_transpose(dst, wide[:, width - 128 : width])

    assert dst.array.tobytes() == np.ascontiguousarray(wide.array[:, -128:].T).tobytes()
