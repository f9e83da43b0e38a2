"""reshape, view, broadcast, permute and dims of size 1: what they show and what they reject."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import DTypeError, KernelError, ShapeError, UnsupportedError
from neuroncore.options import Options


@pytest.fixture
def t(world):
    return world.tile(np.arange(96).reshape(4, 4, 6))


@pytest.fixture
def far(world):
    return world.tile(np.arange(96).reshape(4, 4, 6), space="hbm")


@pytest.mark.parametrize("shape", [(4, 24), (4, 2, 12), (4, 2, 2, 2, 3), [4, 24], (4, 4, 6, 1)])
def test_reshape_shows_the_same_elements(t, shape):
    view = t.reshape(shape)

    np.testing.assert_array_equal(view.array, t.array.reshape(shape))
    assert np.shares_memory(view.array, t.array)


def test_in_hbm_every_dimension_may_be_reshaped(far):
    np.testing.assert_array_equal(far.reshape((96,)).array, np.arange(96))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((4, 23), "changes the element count"),
        ((2, 48), "changes the partition dimension"),
        ((96,), "changes the partition dimension"),
        ("a", "a shape is a tuple of ints"),
        ((4, 24.0), "a shape is a tuple of ints"),
    ],
)
def test_reshape_rejects_counts_partitions_and_other_things(t, shape, message):
    with pytest.raises(ShapeError, match=message):
        t.reshape(shape)


def test_a_reshape_that_would_move_elements_is_rejected(t):
    with pytest.raises(ShapeError, match="would have to move elements"):
        t[:, :, 0:3].reshape((4, 12))
    with pytest.raises(ShapeError, match="would have to move elements"):
        t.permute((0, 2, 1)).reshape((4, 24))


@pytest.mark.parametrize("dtype", ["int32", "uint32", "bfloat16", "uint8", "float16"])
def test_view_reads_the_same_bytes_as_another_dtype(t, dtype):
    view = t.view(dtype)

    assert str(view.spec.dtype) == dtype
    assert view.array.tobytes() == t.array.tobytes()
    assert view.shape == (4, 4, 24 // view.array.itemsize)


def test_view_back_and_forth_is_the_tensor(t):
    there = t.view("uint8").view("float32")

    assert there.spec is t.spec


@pytest.mark.parametrize("dtype", ["float64", "floaty", object()])
def test_view_as_an_unknown_dtype_is_the_kernels_mistake(t, dtype):
    with pytest.raises(DTypeError):
        t.view(dtype)


def test_view_needs_whole_elements_side_by_side(world, t):
    odd = world.tile(np.zeros((4, 3)), "bfloat16")

    with pytest.raises(ShapeError, match="does not divide the last dimension"):
        odd.view("float32")
    with pytest.raises(ShapeError, match="needs a contiguous last dimension"):
        t[:, :, 0:6:2].view("bfloat16")


def test_bits_that_are_not_kept_cannot_be_viewed(make_world):
    world = make_world(options=Options(precise=False))
    t = world.new((4, 8), "bfloat16")

    assert t.view("bfloat16").shape == (4, 8)
    for look in (lambda: t.view("uint16"), lambda: t.ap([[8, 4], [1, 8]], dtype="uint16")):
        with pytest.raises(UnsupportedError, match="the bits of bfloat16 elements are not kept"):
            look()


def test_broadcast_repeats_without_copying(t):
    view = t[:, 0:1, :].broadcast(1, 5)

    assert view.strides == (24, 0, 1)
    assert view.spec.repeats
    np.testing.assert_array_equal(view.array, np.repeat(t.array[:, 0:1], 5, 1))


@pytest.mark.parametrize("dim", [0, 1])
def test_broadcast_takes_a_free_dimension_of_size_one(t, dim):
    with pytest.raises(ShapeError, match=f"cannot broadcast dimension {dim}"):
        t.broadcast(dim, 2)


def test_permute_reorders_free_dimensions(t, far):
    np.testing.assert_array_equal(t.permute((0, 2, 1)).array, t.array.transpose(0, 2, 1))
    np.testing.assert_array_equal(far.permute((2, 0, 1)).array, far.array.transpose(2, 0, 1))


@pytest.mark.parametrize("dims", [(1, 0, 2), (0, 1), (0, 1, 1), (0, 1, 3)])
def test_permute_keeps_partitions_first_on_chip(t, dims):
    with pytest.raises(ShapeError, match="cannot permute"):
        t.permute(dims)


def test_expand_and_squeeze_are_inverse(t):
    wide = t.expand_dim(1)

    assert wide.shape == (4, 1, 4, 6)
    assert wide.squeeze_dim(1).spec is t.spec


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t: t.expand_dim(0),
        lambda t: t.squeeze_dim(1),
        lambda t: t.squeeze_dim(7),
        lambda t: t.expand_dim(-9),
        lambda t: t.broadcast(9, 2),
    ],
)
def test_dimensions_that_are_not_there_or_not_one_are_rejected(t, wrong):
    with pytest.raises(KernelError):
        wrong(t)


def test_views_keep_the_storage_the_start_and_the_permission(world, t):
    fixed = world.core.adopt(np.zeros((128, 8), np.float32), t.buffer, mutable=False)

    views = [fixed[64:96].reshape((32, 2, 4)).permute((0, 2, 1)), fixed[64:96].view("uint8")]

    assert all(v.spec.start == 64 and not v.spec.mutable for v in views)
    assert all(v.storage is fixed.storage for v in views)
