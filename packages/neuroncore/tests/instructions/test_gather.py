"""local_gather and sequence_bounds against plain Python loops."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import AccessError, AttributeValueError, ShapeError

# -- local_gather ---------------------------------------------------------------------------------


@pytest.mark.parametrize("partitions", [16, 48, 128])
@pytest.mark.parametrize("each", [1, 4, 32])
@pytest.mark.parametrize("valid", [None, 1, 37])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_each_group_of_16_partitions_shares_its_indices(
    world, nisa, rng, values, partitions, each, valid, dtype
):
    src = world.tile(rng.integers(0, 99, (partitions, 64)), dtype)
    index = world.tile(rng.integers(0, 65 - each, (partitions, 3)), "uint16")
    count = 48 if valid is None else valid
    dst = world.new((partitions, count, each), dtype)

    nisa.local_gather(dst, src, index, each, valid)

    for p in range(partitions):
        group = values(index)[p - p % 16 : p - p % 16 + 16].astype(int)
        flat = [group[q, i] for i in range(3) for q in range(16)][:count]
        assert values(dst)[p].tolist() == [values(src)[p, o : o + each].tolist() for o in flat]


def test_rows_of_several_dimensions_are_flattened(world, nisa, values):
    src = world.tile(np.arange(16 * 12.0).reshape(16, 3, 4))
    dst = world.new((16, 16))

    nisa.local_gather(dst, src, world.tile(np.full((16, 1), 11), "uint16"))

    assert (values(dst) == values(src)[:, 2:, 3]).all()


def test_an_offset_whose_elements_leave_the_row_is_rejected(world, nisa):
    src, index = world.tile(np.ones((16, 8))), world.tile(np.full((16, 1), 5), "uint16")

    with pytest.raises(AccessError, match="an index is 5"):
        nisa.local_gather(world.new((16, 64)), src, index, 4)


@pytest.mark.parametrize("valid", [0, 17, -1])
def test_valid_indices_are_at_most_those_there_are(world, nisa, valid):
    src, index = world.tile(np.ones((16, 8))), world.tile(np.zeros((16, 1)), "uint16")

    with pytest.raises(AttributeValueError, match=f"num_valid_indices {valid}"):
        nisa.local_gather(world.new((16, 17)), src, index, 1, valid)


def test_dst_holds_exactly_what_is_gathered(world, nisa):
    src, index = world.tile(np.ones((16, 8))), world.tile(np.zeros((16, 1)), "uint16")

    with pytest.raises(ShapeError, match="dst has 17 elements per partition"):
        nisa.local_gather(world.new((16, 17)), src, index)


# -- sequence_bounds ------------------------------------------------------------------------------


def bounds(ids):
    """[begin, past the end] of the run around each place, (n, -1) for padding."""
    n, found = len(ids), []
    for i, own in enumerate(ids):
        first = last = i
        while first > 0 and ids[first - 1] == own:
            first -= 1
        while last < n and ids[last] == own:
            last += 1
        found.append((n, -1) if own == 0 else (first, last))
    return np.array(found).T


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("n", [1, 2, 33, 512])
def test_every_element_knows_the_run_it_belongs_to(world, nisa, rng, values, dtype, n):
    ids = rng.integers(0, 3, n)
    dst = world.new((1, 2, n), dtype)

    nisa.sequence_bounds(dst, world.tile(ids[None], dtype))

    np.testing.assert_array_equal(values(dst)[0], bounds(ids.tolist()))


def test_integer_ids_beyond_float32_are_distinguished(world, nisa, values):
    ids, dst = [[2**24, 2**24 + 1]], world.new((1, 2, 2), "int32")

    nisa.sequence_bounds(dst, world.tile(ids, "int32"))

    assert values(dst)[0].tolist() == [[0, 1], [1, 2]]


def test_a_negative_id_is_rejected_with_its_place(world, nisa):
    with pytest.raises(AttributeValueError, match="segment id -2") as raised:
        nisa.sequence_bounds(world.new((1, 2, 3)), world.tile([[1.0, -2.0, 3.0]]))
    assert "-2 at place 1" in str(raised.value)
