"""Subscripts of a tensor: edges, versions' rules, messages."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import AccessError
from neuroncore.memory import IndexRules, ds


@pytest.fixture
def t(world):
    """(128, 4, 6) in SBUF, every element its own number."""
    return world.tile(np.arange(128 * 24).reshape(128, 4, 6))


@pytest.mark.parametrize(
    "key",
    [
        np.s_[0:127], np.s_[0:128], np.s_[127:128], np.s_[:], np.s_[...], np.s_[:, 1:3],
        np.s_[:, :, 0:6:2], np.s_[:, ::3, 1:6:4], np.s_[..., 5:6], np.s_[32:64, ..., 2:4],
        np.s_[:, 0:4, ...], np.s_[-32:128], np.s_[0:-1], np.s_[np.int64(0) : np.int32(3)],
    ],
    ids=str,
)  # fmt: skip
def test_slices_are_numpys(t, key):
    np.testing.assert_array_equal(t[key].array, t.array[key])


@pytest.mark.parametrize(
    ("start", "stop", "legal"),
    [(0, 127, True), (0, 128, True), (0, 129, False), (128, 129, False), (5, 5, False),
     (6, 5, False), (-129, 128, False)],
)  # fmt: skip
def test_bounds_of_a_slice_are_checked(t, start, stop, legal):
    if legal:
        assert t[start:stop].shape == (stop - start, 4, 6)
    else:
        with pytest.raises(AccessError, match="is outside dimension 0") as raised:
            t[start:stop]
        assert raised.value.expected == "0 <= start < stop <= 128 and step >= 1"


def test_ds_is_a_start_and_a_size(t):
    np.testing.assert_array_equal(t[ds(32, 64), ds(1, 2)].array, t.array[32:96, 1:3])


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        (np.s_[5], (1, 4, 6)),
        (np.s_[5, 2], (1, 6)),
        (np.s_[5, 2, 1], (1, 1)),
        (np.s_[:, 2], (128, 6)),
        (np.s_[:, 2, 1], (128, 1)),
        (np.s_[:, :, 1], (128, 4)),
        (np.s_[..., 1], (128, 4)),
        (np.s_[:, -1], (128, 6)),
    ],
)
def test_an_int_on_chip_drops_a_free_dimension_but_never_below_two(t, key, shape):
    view = t[key]

    assert view.shape == shape
    np.testing.assert_array_equal(view.array.reshape(-1), t.array[key].reshape(-1))


@pytest.mark.parametrize(
    ("key", "shape"), [(np.s_[5], (4, 6)), (np.s_[5, 2], (6,)), (np.s_[5, 2, 1], (1,))]
)
def test_an_int_in_hbm_drops_its_dimension_but_never_the_last(world, key, shape):
    t = world.tile(np.arange(10 * 24).reshape(10, 4, 6), space="hbm")

    assert t[key].shape == shape
    np.testing.assert_array_equal(t[key].array.reshape(-1), t.array[key].reshape(-1))


def test_older_documents_drop_the_partition_dimension(make_world):
    t = make_world(rules=IndexRules(keep_partition=False)).tile(np.zeros((64, 64, 64)))

    assert t[0].shape == (64, 64)
    assert t[0, 0, 10].shape == (1, 1)


def test_negative_ints_can_be_rejected(make_world):
    t = make_world(rules=IndexRules(negative_index=False)).tile(np.zeros((4, 4)))

    with pytest.raises(AccessError, match="index -1 is outside dimension 1"):
        t[:, -1]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (np.s_[:, 4], "index 4 is outside dimension 1"),
        (np.s_[:, -5], "index -5 is outside dimension 1"),
        (np.s_[:, :, 0:7], "slice 0:7 is outside dimension 2"),
        (np.s_[:, ::0], "slice step 0 of dimension 1 is not positive"),
        (np.s_[:, ::-1], "slice step -1 of dimension 1 is not positive"),
        (np.s_[::2], "step 2 over partitions"),
        (np.s_[0, 0, 0, 0], "too many indices for a tensor of rank 3"),
        (np.s_[..., ...], "too many indices for a tensor of rank 3"),
        (np.s_[:, 1.5], "dimension 1 is indexed with a float"),
        (np.s_[:, True], "dimension 1 is indexed with a bool"),
        (np.s_[:, [0, 1]], "dimension 1 is indexed with a list"),
        (np.s_[:, None], "dimension 1 is indexed with a NoneType"),
        (np.s_[:, "a":], "dimension 1 is indexed with a str"),
    ],
)
def test_other_keys_are_named(t, key, message):
    with pytest.raises(AccessError) as raised:
        t[key]

    assert raised.value.what == message


def test_a_tensor_as_an_index_points_to_ap(t, world):
    with pytest.raises(AccessError) as raised:
        t[:, world.tile([[1]], "int32")]

    assert ".ap(scalar_offset= or vector_offset=)" in str(raised.value)


def test_slices_chain_and_share_memory(t):
    view = t[32:96][0:32, 1:4][:, 0:3:2, 2]

    view.array[...] = -1

    assert view.spec.start == 32
    assert (t.array[32:64, 1:4:2, 2] == -1).all()


def test_strides_and_offset_describe_the_view(t):
    view = t[32:64, 1:3, 0:6:2]

    assert view.strides == (24, 6, 2)
    assert view.offset == 32 * 24 + 6
    assert view.get_pattern() == [[24, 32], [6, 2], [2, 3]]


@pytest.mark.parametrize("space", ["sbuf", "psum", "hbm"])
def test_equal_slices_have_the_same_spec_object(world, space):
    t, other = (world.tile(np.zeros((64, 8)), space=space) for _ in range(2))

    assert t[0:32, 2:4].spec is other[0:32, 2:4].spec
    assert t[0:32, 2:4].spec is not t[0:32, 2:5].spec
    assert (t[32:64, :].spec is t[0:32, :].spec) == (space == "hbm")


@pytest.mark.parametrize("start", [0, 1, 511, 512, 700, 1536])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_slice_of_psum_knows_where_in_its_bank_it_begins(world, start, dtype):
    t = world.tile(np.zeros((4, 2, 1600)), dtype, "psum")
    itemsize = t.array.itemsize

    for row in (0, 1):
        view = t[0:4, row : row + 1, :][0:4, 0:1, start:1600]
        assert view.spec.bank_offset == (row * 1600 + start) * itemsize % 2048
        assert view.spec is t[0:4:1, row : row + 1, start:].spec  # not remembered


def test_columns_of_one_width_know_where_in_their_bank_they_begin(world):
    t = world.tile(np.zeros((4, 512)), space="psum")

    assert [t[:, at : at + 8].spec.bank_offset for at in (0, 16, 0)] == [0, 64, 0]


@pytest.mark.parametrize(
    "key",
    [np.s_[:, 4:9], np.s_[:, 3:3], np.s_[:, True:4], np.s_[:, -9:4], np.s_[:, 1.0:2]],
    ids=str,
)
@pytest.mark.parametrize("space", ["sbuf", "psum", "hbm"])
def test_columns_that_are_none_of_the_tensor_are_rejected(world, space, key):
    t = world.tile(np.zeros((4, 8)), space=space)
    assert t[:, 1:4].shape == (4, 3)

    with pytest.raises(AccessError):
        _ = t[key]


@pytest.mark.parametrize("space", ["sbuf", "psum", "hbm"])
def test_a_window_that_is_named_again_is_checked_like_the_first_time(world, space):
    t = world.tile(np.arange(64 * 8).reshape(64, 8), space=space)
    first = t[0:32, 2:6]

    again = t[0:32, 2:6]

    assert again.spec is first.spec
    np.testing.assert_array_equal(again.array, t.array[0:32, 2:6])
    assert t[0:32, 2:6:2].shape == (32, 2)
    with pytest.raises(AccessError, match="indexed with a float"):
        t[0:32, 2.0:6.0]
