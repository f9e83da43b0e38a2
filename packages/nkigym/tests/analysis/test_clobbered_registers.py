"""Instructions that leave a register undefined need no order among themselves."""

from __future__ import annotations

from nkigym.analysis.accesses import ADD, CLOBBER, CallAccess, carried_state
from nkigym.analysis.disjointness import conflicts

CLOBBERS, ADDS = (CallAccess("vector.accumulators", kind, None) for kind in (CLOBBER, ADD))


def test_two_clobbers_commute():
    assert list(conflicts([CLOBBERS], [CLOBBERS])) == []


def test_a_clobber_and_a_reduction_do_not_commute():
    assert list(conflicts([CLOBBERS], [ADDS])) == [(CLOBBERS, ADDS)]


def test_only_the_reduction_carries_state_into_the_next_execution():
    assert carried_state([CLOBBERS]) is None
    assert carried_state([ADDS]) == "vector.accumulators"
