"""Footprints against sets of bytes counted one by one."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from neuroncore.effects import Footprint, footprint

# No clock decides: the same examples every time, however slow the machine.
CASES = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

DIMENSION = st.tuples(st.integers(1, 4), st.integers(-40, 40))
ACCESS = st.tuples(
    st.integers(0, 80), st.lists(DIMENSION, max_size=4), st.integers(1, 6)
)  # offset, (size, stride) per dimension, itemsize


def made(access):
    offset, dims, width = access
    return footprint(offset, tuple(n for n, _ in dims), tuple(s for _, s in dims), width)


def bytes_of(access):
    offset, dims, width = access
    steps = product(*(range(0, n * s, s) if s else [0] for n, s in dims))
    return {offset + sum(step) + b for step in steps for b in range(width)}


def spelled_out(found):
    dims = list(zip(found.shape, found.strides, strict=True))
    return bytes_of((found.offset, dims, found.itemsize))


@given(ACCESS)
@settings(CASES, max_examples=500)
def test_the_canonical_form_names_the_same_bytes(access):
    found = made(access)
    assert spelled_out(found) == bytes_of(access)


@given(ACCESS)
@settings(CASES, max_examples=500)
def test_bounds_and_number_of_bytes_are_exact(access):
    found, marked = made(access), bytes_of(access)
    assert found.bounds() == (min(marked), max(marked) + 1)
    assert found.num_bytes() == len(marked)


@given(ACCESS)
@settings(CASES, max_examples=500)
def test_the_canonical_form_has_no_dimension_that_could_go(access):
    found = made(access)
    assert all(n > 1 for n in found.shape)
    assert all(s > found.itemsize for s in found.strides)
    assert list(found.strides) == sorted(set(found.strides), reverse=True)
    assert footprint(found.offset, found.shape, found.strides, found.itemsize) == found


@given(ACCESS, ACCESS)
@settings(CASES, max_examples=1000)
@example((0, [(4, 8)], 4), (4, [(4, 8)], 4))  # interleaved columns
@example((0, [(4, 8)], 4), (32, [(4, 8)], 4))  # touching intervals
@example((0, [(3, 12), (3, 4)], 4), (4, [(3, 4), (3, 12)], 1))  # a transpose
@example((0, [(5, 0)], 2), (1, [(5, 0)], 2))  # broadcasts
def test_overlap_is_exactly_a_shared_byte(one, other):
    shared = bytes_of(one) & bytes_of(other)
    assert made(one).overlaps(made(other)) is bool(shared)
    assert made(other).overlaps(made(one)) is bool(shared)


LARGE = st.tuples(st.integers(2, 60), st.integers(1, 3000))


@given(st.lists(LARGE, min_size=1, max_size=2), st.lists(LARGE, min_size=1, max_size=2),
       st.integers(0, 9000), st.integers(1, 4), st.integers(1, 4))  # fmt: skip
@settings(CASES, max_examples=300)
def test_overlap_is_exact_where_strides_have_nothing_in_common(dims, others, at, width, wide):
    one, other = (0, dims, width), (at, others, wide)
    assert made(one).overlaps(made(other)) is bool(bytes_of(one) & bytes_of(other))


def test_halves_of_a_row_do_not_meet_and_their_rows_do():
    left = footprint(0, (128, 256), (2048, 4), 4)
    right = footprint(1024, (128, 256), (2048, 4), 4)
    row = footprint(2048 * 5, (512,), (4,), 4)

    assert not left.overlaps(right)
    assert left.overlaps(row) and right.overlaps(row)


@pytest.mark.parametrize(
    ("shape", "strides"),
    [((4, 8), (32, 4)), ((8, 4), (4, 32)), ((2, 2, 8), (64, 32, 4)), ((32,), (4,)),
     ((1, 32), (999, 4)), ((3, 32), (0, 4)), ((31, 5), (4, 1))],
)  # fmt: skip
def test_one_set_of_bytes_has_one_footprint(shape, strides):
    assert footprint(64, shape, strides, 4) == Footprint(64, (), (), 128)


def test_no_bytes_overlap_nothing():
    nothing, all_of_it = footprint(8, (0, 4), (4, 1), 1), footprint(0, (64,), (1,), 1)

    assert nothing.num_bytes() == 0
    assert not nothing.overlaps(all_of_it) and not all_of_it.overlaps(nothing)


@pytest.mark.parametrize(
    ("shape", "strides", "width"), [((2,), (), 1), ((-1,), (4,), 1), ((2,), (4,), -1)]
)
def test_what_is_no_footprint_is_rejected(shape, strides, width):
    with pytest.raises(
        ValueError, match="one stride per dimension and no negative size; got shape"
    ):
        footprint(0, shape, strides, width)
