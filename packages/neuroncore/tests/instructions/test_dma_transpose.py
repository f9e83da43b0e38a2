"""dma_transpose against numpy.transpose, by version, form and dge_mode."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from neuroncore.enums import DgeMode, OobMode
from neuroncore.errors import AccessError, AttributeValueError, ShapeError
from neuroncore.instructions import INSTRUCTIONS, KernelWarning
from neuroncore.isa.examples import example_call
from neuroncore.isa.functions import make_function
from neuroncore.options import Options
from neuroncore.surface import signature

AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def of(version):
    record = INSTRUCTIONS["dma_transpose"]
    return SimpleNamespace(dma_transpose=make_function(record, signature("dma_transpose", version)))  # pyrefly: ignore


def rows_of(world, values, indices, shape=None):
    """Rows of an HBM tensor of `values` (bfloat16) named by a uint32 index tile."""
    base = world.tile(values, "bfloat16", "hbm")
    shape = shape or (np.size(indices), *base.shape[1:])
    steps = [int(np.prod(shape[d + 1 :], dtype=int)) for d in range(len(shape))]
    index = world.tile(np.asarray(indices), "uint32")
    return base.ap([[s, n] for s, n in zip(steps, shape, strict=True)], vector_offset=index)


# -- direct ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 5), (100, 128), (3, 4, 5), (2, 3, 4, 5), (1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3", "int32"])
@pytest.mark.parametrize("space", ["hbm", "sbuf"])
def test_dimensions_are_transposed_by_the_axes_of_their_rank(
    world, nisa, rng, values, shape, dtype, space
):
    src = world.tile(rng.integers(0, 99, shape), dtype, space)
    transposed = np.transpose(values(src), AXES[len(shape)])
    dst = world.new(transposed.shape, dtype)

    nisa.dma_transpose(dst, src, AXES[len(shape)])

    np.testing.assert_array_equal(values(dst), transposed)


def test_bits_are_moved_as_they_are(world, nisa):
    bits = np.array([[0x7F812345, 0xFFC00001], [1, 2]], np.uint32)
    dst = world.new((2, 2))

    nisa.dma_transpose(dst, world.core.adopt(bits.view(np.float32)))

    assert dst.array.view(np.uint32).tolist() == bits.T.tolist()


def test_a_scalar_offset_moves_the_source(world, nisa, values):
    base = world.tile(np.arange(24.0).reshape(6, 4), space="hbm")
    src = base.ap([[4, 2], [1, 4]], scalar_offset=world.tile([[3]], "int32"))
    dst = world.new((4, 2))

    nisa.dma_transpose(dst, src)

    np.testing.assert_array_equal(values(dst), np.arange(12.0, 20.0).reshape(2, 4).T)


@pytest.mark.parametrize(("version", "accepts"), [("0.2", True), ("0.3", True), ("0.4", False)])
def test_a_destination_of_lower_rank_was_padded_up_to_03(world, values, version, accepts):
    src, dst = world.tile(np.arange(6.0).reshape(2, 1, 3), space="hbm"), world.new((3, 2))

    if accepts:
        of(version).dma_transpose(dst, src)
        np.testing.assert_array_equal(values(dst), np.arange(6.0).reshape(2, 3).T)
    else:
        with pytest.raises(ShapeError, match=r"dst has shape \(3, 2\)"):
            of(version).dma_transpose(dst, src)


HARDWARE = {
    ("0.5", (16, 128)): True,
    ("0.5", (16, 64)): False,
    ("0.5", (8, 16, 128)): False,
    ("0.6", (16, 64)): True,
    ("0.6", (16, 129)): False,
    ("0.6", (8, 64)): False,
    ("0.6", (8, 2, 64)): True,
    ("0.6", (8, 3, 64)): False,
    ("0.6", (4, 3, 4, 128)): True,
    ("0.6", (32, 1, 64)): False,
}


@pytest.mark.parametrize(("version", "shape"), HARDWARE)
def test_hardware_descriptors_take_the_shapes_of_the_version(world, version, shape):
    src = world.tile(np.zeros(shape), "bfloat16", "hbm")
    transposed = tuple(shape[a] for a in AXES[len(shape)])
    dst = world.core.adopt(np.zeros(transposed, src.array.dtype), src.buffer.sbuf)

    if HARDWARE[version, shape]:
        of(version).dma_transpose(dst, src, dge_mode=DgeMode.hwdge)
    else:
        with pytest.raises(ShapeError):
            of(version).dma_transpose(dst, src, dge_mode=DgeMode.hwdge)


@pytest.mark.parametrize("mode", ["error", "warn", "ignore"])
def test_dge_mode_none_is_a_modelling_assumption_with_an_option(make_world, nisa, values, mode):
    world = make_world(options=Options(transpose_dge_none=mode))
    src, dst = world.tile([[1.0, 2.0]], space="hbm"), world.new((2, 1))

    if mode == "error":
        with pytest.raises(AttributeValueError, match="dge_mode none"):
            nisa.dma_transpose(dst, src, dge_mode=DgeMode.none)
        return
    if mode == "warn":
        with pytest.warns(KernelWarning, match="dge_mode none is not a documented value"):
            nisa.dma_transpose(dst, src, dge_mode=DgeMode.none)
    else:
        nisa.dma_transpose(dst, src, dge_mode=DgeMode.none)
    assert values(dst).ravel().tolist() == [1, 2]


# -- indirect -------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 3])
def test_indices_are_read_column_by_column(world, nisa, rng, values, columns):
    table, indices = rng.integers(0, 99, (300, 7)), rng.integers(0, 300, (128, columns))
    dst = world.new((7, 128 * columns), "bfloat16")

    nisa.dma_transpose(dst, rows_of(world, table, indices))

    np.testing.assert_array_equal(values(dst), table[indices.T.ravel()].T)


def test_gathered_4d_rows_come_to_the_last_axis(world, nisa, rng, values):
    table, indices = rng.integers(0, 99, (50, 3, 1, 8)), rng.integers(0, 50, (16, 1))
    dst = world.new((8, 3, 1, 16), "bfloat16")

    nisa.dma_transpose(dst, rows_of(world, table, indices))

    np.testing.assert_array_equal(values(dst), table[indices.ravel()].transpose(3, 1, 2, 0))


def test_rows_out_of_bounds_are_an_error_or_skipped(world, nisa, values):
    table, indices = np.arange(160.0).reshape(40, 4), np.arange(32, 48)[:, None]
    dst = world.tile(np.full((4, 16), -1.0), "bfloat16")

    with pytest.raises(AccessError, match="vector_offset row 8 is 40"):
        nisa.dma_transpose(dst, rows_of(world, table, indices))
    nisa.dma_transpose(dst, rows_of(world, table, indices), oob_mode=OobMode.skip)

    np.testing.assert_array_equal(values(dst)[:, :8], table[32:].T)
    assert (values(dst)[:, 8:] == -1).all()


def test_02_gathers_3d_rows_of_128_only(world):
    flat, deep = np.zeros((16, 128)), np.zeros((16, 2, 128))
    indices, old = np.arange(16)[:, None], of("0.2")

    old.dma_transpose(world.new((128, 2, 16), "bfloat16"), rows_of(world, deep, indices))
    with pytest.raises(ShapeError, match=r"src has shape \(16, 128\)"):
        old.dma_transpose(world.new((128, 16), "bfloat16"), rows_of(world, flat, indices))


def test_the_index_tile_is_read(world):
    record = INSTRUCTIONS["dma_transpose"]

    direct, gathered = (record.effects(example_call(record, e).call) for e in record.examples)

    assert [e.operand for e in direct] == ["src", "dst"]
    assert [e.operand for e in gathered] == ["src", "dst", "src.index"]
