"""Swizzles as maps of bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neuroncore.layout import Swizzle

# No clock decides: the same examples every time, however slow the machine.
CASES = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

SWIZZLES = st.tuples(
    *(st.integers(1 << k, (2 << k) - 1) for k in range(5)), st.integers(0, 31)
).map(lambda drawn: Swizzle(drawn[:-1], drawn[-1]))
ALL = range(64)


@given(SWIZZLES)
@settings(CASES)
def test_every_address_has_its_own_place_in_its_block(swizzle):
    moved = [swizzle(address) for address in ALL]
    assert sorted(moved) == list(ALL)
    assert [m >> swizzle.width for m in moved] == [a >> swizzle.width for a in ALL]
    assert swizzle(np.arange(64)).tolist() == moved


@given(SWIZZLES)
@settings(CASES)
def test_the_inverse_undoes_it(swizzle):
    undo = swizzle.inverse()
    assert [undo(swizzle(address)) for address in ALL] == list(ALL)


@given(SWIZZLES, SWIZZLES)
@settings(CASES)
def test_one_after_the_other_is_a_swizzle(first, second):
    both = first.then(second)
    assert [both(address) for address in ALL] == [second(first(address)) for address in ALL]


@given(SWIZZLES, st.integers(0, 3))
@settings(CASES)
def test_scaled_addresses_go_where_the_scaled_swizzle_says(swizzle, by):
    scaled = swizzle.scaled(by)
    assert [scaled(a << by) for a in ALL] == [swizzle(a) << by for a in ALL]


def test_chunks_of_a_row_are_flipped_by_the_row():
    swizzle = Swizzle.xor(bits=3, base=4, shift=3)
    for row in range(8):
        for chunk in range(8):
            assert swizzle(row << 7 | chunk << 4 | 5) == row << 7 | (chunk ^ row) << 4 | 5


def test_identity_columns_say_nothing():
    assert Swizzle((1, 2, 4)) == Swizzle() and not Swizzle((1, 2))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Swizzle((1, 4)), "column 1 of a swizzle has bit 1 as its highest; got 0b100"),
        (lambda: Swizzle((1, 1)), "column 1 of a swizzle has bit 1 as its highest"),
        (lambda: Swizzle((), -1), "the constant of a swizzle is not negative"),
        (lambda: Swizzle.xor(2, 0, 0), "bits >= 0, base >= 0 and shift >= 1; got bits 2, base 0"),
    ],
)
def test_what_is_no_swizzle_is_rejected(make, says):
    with pytest.raises(ValueError, match=says):
        make()
