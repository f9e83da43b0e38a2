"""nl.loop_reduce: the destination is the second operand."""

import numpy as np
import pytest

from neuroncore.errors import ShapeError, SignatureError, UnsupportedError
from neuroncore.machine.backend import CURRENT, Choice
from neuroncore.options import Options
from nki_beta1 import nki, nl

LOOPS = 3


def reduced(x, make, accumulate):
    """`accumulate(destination, tile, i)` for every x[i] (128, 4) into what `make()` gives."""

    @nki.jit
    def kernel(x):
        out = nl.ndarray(x.shape[1:], dtype=nl.float32, buffer=nl.shared_hbm)
        into = make()
        for i in nl.affine_range(x.shape[0]):
            into = accumulate(into, nl.load(x[i]), i)
        nl.store(out, value=into)
        return out

    return kernel(x)


def by_subscript(op):
    def accumulate(into, tile, i):
        into[...] = nl.loop_reduce(tile, op=op, loop_indices=[i])
        return into

    return accumulate


def by_name(into, tile, i):
    into = nl.loop_reduce(tile, op=np.add, loop_indices=[i], dtype=nl.float32)
    return into  # noqa: RET504 - the assignment is what is tested


def unwritten():
    return nl.ndarray((128, 4), dtype=nl.float32)


@pytest.fixture
def x(rng):
    return rng.integers(-9, 9, (LOOPS, 128, 4)).astype(np.float32)  # sums of integers are exact


@pytest.mark.parametrize(
    ("op", "meaning"), [(np.add, np.sum), (np.max, np.max), (nl.minimum, np.min)]
)
def test_an_unwritten_destination_starts_with_the_first_tile(op, meaning, x):
    np.testing.assert_array_equal(reduced(x, unwritten, by_subscript(op)), meaning(x, axis=0))


def test_a_written_destination_counts(x):
    sevens = reduced(x, lambda: nl.full((128, 4), 7, dtype=nl.float32), by_subscript(np.max))

    np.testing.assert_array_equal(sevens, np.maximum(x.max(axis=0), 7))


def test_a_name_is_a_destination_too(x):
    start = reduced(x, lambda: nl.zeros((128, 4), dtype=nl.float32), by_name)

    np.testing.assert_array_equal(start, x.sum(axis=0))


def test_parts_of_a_tile_start_one_by_one(x):
    def into_columns(into, tile, i):
        for c in nl.affine_range(4):
            into[:, c : c + 1] = nl.loop_reduce(tile[:, c : c + 1], op=np.max, loop_indices=[i])
        return into

    np.testing.assert_array_equal(reduced(x, unwritten, into_columns), x.max(axis=0))


def test_nan_in_the_data_stays(x):
    x[0, 5] = np.nan

    total = reduced(x, unwritten, by_subscript(np.add))

    np.testing.assert_array_equal(np.isnan(total), np.isnan(x.sum(axis=0)))


def test_a_mask_leaves_the_other_rows_alone(x):
    def first_rows(into, tile, i):
        rows = nl.arange(128)[:, None]
        into[...] = nl.loop_reduce(tile, op=np.add, loop_indices=[i], mask=rows < 100)
        return into

    total = reduced(x, lambda: nl.zeros((128, 4), dtype=nl.float32), first_rows)

    np.testing.assert_array_equal(total[:100], x.sum(axis=0)[:100])
    assert not total[100:].any()


def test_half_a_destination_is_rejected(x):
    def half():
        tile = unwritten()
        tile[:, 0:2] = 0.0
        return tile

    with pytest.raises(UnsupportedError, match="part of the destination has been written, part"):
        reduced(x, half, by_subscript(np.add))


def test_memory_that_starts_as_zero_hides_who_wrote_it(x):
    options = Options(uninitialized="zero")
    token = CURRENT.set(Choice("beta1", "0.1", options=options))
    try:
        total = reduced(x, unwritten, by_subscript(np.add))
        with pytest.raises(UnsupportedError, match="has been written cannot be told"):
            reduced(x, unwritten, by_subscript(np.max))
    finally:
        CURRENT.reset(token)

    np.testing.assert_array_equal(total, x.sum(axis=0))


def test_a_result_that_goes_nowhere_is_rejected(x):
    def used_at_once(into, tile, i):
        return nl.copy(nl.loop_reduce(tile, op=np.add, loop_indices=[i]).astype(nl.float32))

    with pytest.raises(SignatureError, match="used before it is assigned"):
        reduced(x, unwritten, used_at_once)


def test_loops_have_to_be_named(x):
    def no_loops(into, tile, i):
        into[...] = nl.loop_reduce(tile, op=np.add, loop_indices=[])

    with pytest.raises(SignatureError, match="loop_indices names no loop"):
        reduced(x, unwritten, no_loops)


def test_shapes_have_to_agree(x):
    with pytest.raises(ShapeError, match="is reduced into one of shape"):
        reduced(x, lambda: nl.zeros((128, 2), dtype=nl.float32), by_subscript(np.add))


# -- loops that are not reduced over --------------------------------------------------------------


@pytest.fixture
def pairs(rng):
    return rng.integers(-9, 9, (2, 3, 128, 4)).astype(np.float32)


def per_turn(x, body):
    """`body(x[m, b], r, m, b)` for all m and b; what r is after each m."""

    @nki.jit
    def kernel(x):
        out = nl.ndarray((2, 128, 4), dtype=nl.float32, buffer=nl.shared_hbm)
        body(x, out)
        return out

    return kernel(x)


def test_a_turn_of_a_loop_that_is_not_named_begins_anew(pairs):
    def body(x, out):
        r = None
        for m in nl.affine_range(2):
            for b in nl.affine_range(3):
                r = nl.loop_reduce(nl.load(x[m, b]), op=np.add, loop_indices=[b])
            nl.store(out[m], value=r)

    np.testing.assert_array_equal(per_turn(pairs, body), pairs.sum(axis=1))


def test_all_named_loops_are_reduced_over(pairs):
    def body(x, out):
        r = None
        for m in nl.affine_range(2):
            for b in nl.affine_range(3):
                r = nl.loop_reduce(nl.load(x[m, b]), np.add, (m, b))
            nl.store(out[m], value=r)

    expected = np.cumsum(pairs.sum(axis=1), axis=0)
    np.testing.assert_array_equal(per_turn(pairs, body), expected)


def test_every_turn_begins_with_what_the_name_stood_for(pairs):
    def body(x, out):
        r = nl.full((128, 4), 7, dtype=nl.float32)
        for m in nl.affine_range(2):
            for b in nl.affine_range(3):
                r = nl.loop_reduce(nl.load(x[m, b]), op=np.max, loop_indices=[b])
            nl.store(out[m], value=r)

    np.testing.assert_array_equal(per_turn(pairs, body), np.maximum(pairs.max(axis=1), 7))


def test_a_name_bound_in_the_turn_counts_in_it(pairs):
    def body(x, out):
        for m in nl.affine_range(2):
            r = nl.full((128, 4), float(m), dtype=nl.float32)
            for b in nl.affine_range(3):
                r = nl.loop_reduce(nl.load(x[m, b]), op=np.add, loop_indices=[b])
            nl.store(out[m], value=r)

    expected = pairs.sum(axis=1) + np.arange(2, dtype=np.float32)[:, None, None]
    np.testing.assert_array_equal(per_turn(pairs, body), expected)


def test_a_tensor_of_every_turn_is_a_destination_of_its_own(pairs):
    def body(x, out):
        for m in nl.affine_range(2):
            into = unwritten()
            for b in nl.affine_range(3):
                into[...] = nl.loop_reduce(nl.load(x[m, b]), op=np.add, loop_indices=[b])
            nl.store(out[m], value=into)

    np.testing.assert_array_equal(per_turn(pairs, body), pairs.sum(axis=1))


def test_nan_in_what_a_name_stands_for_stays(pairs):
    pairs[0, 0, 5] = np.nan

    def body(x, out):
        r = None
        for m in nl.affine_range(2):
            for b in nl.affine_range(3):
                r = nl.loop_reduce(nl.load(x[m, b]), op=np.add, loop_indices=[b])
            nl.store(out[m], value=r)

    np.testing.assert_array_equal(per_turn(pairs, body), pairs.sum(axis=1))


def test_a_loop_inside_the_reduced_one_has_to_be_named(pairs):
    def body(x, out):
        r = None
        for b in nl.affine_range(3):
            for m in nl.affine_range(2):
                r = nl.loop_reduce(nl.load(x[m, b]), op=np.add, loop_indices=[b])
        nl.store(out[0], value=r)

    with pytest.raises(UnsupportedError, match="the loop over m runs inside the ones that are"):
        per_turn(pairs, body)


def test_loops_that_the_call_does_not_spell_out_are_rejected(pairs):
    def body(x, out):
        r = None
        for m in nl.affine_range(2):
            for b in nl.affine_range(3):
                named = [b]
                r = nl.loop_reduce(nl.load(x[m, b]), op=np.add, loop_indices=named)
            nl.store(out[m], value=r)

    with pytest.raises(UnsupportedError, match="which of the loops over m, b are meant cannot be"):
        per_turn(pairs, body)
