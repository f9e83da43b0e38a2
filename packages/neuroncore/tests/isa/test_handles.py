"""What nki.isa calls return, and lists among their arguments."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import SignatureError
from neuroncore.isa.functions import Handle


def test_from_06_on_calls_return_a_handle_that_others_may_depend_on(world, nisa):
    t = world.tile(np.zeros((4, 8)))

    first, second = nisa.memset(t, 1.0), nisa.memset(t, 2.0)

    assert isinstance(first, Handle)
    assert second.depends_on(first) is second
    with pytest.raises(SignatureError, match=r"depends_on takes what nki\.isa calls"):
        second.depends_on(t)


def test_up_to_05_they_return_nothing(world, nisa_02):
    assert nisa_02.memset(world.tile(np.zeros((4, 8))), 1.0) is None


def test_lists_and_tuples_are_the_same_pattern(world, nisa):
    t = world.new((1, 13), "int32")
    nisa.iota(t, [[1, 13]])
    plans = len(world.core.plans)

    nisa.iota(t, [[1, 13]])
    nisa.iota(t, ((1, 13),))
    nisa.iota(t, [(1, 13)])

    assert len(world.core.plans) == plans + 1  # the first call wrote new memory


def test_changing_a_list_afterwards_changes_the_next_call_only(world, nisa):
    t, pattern = world.new((1, 3), "int32"), [[1, 3]]
    nisa.iota(t, pattern)
    pattern[0][0] = 10

    assert t.array.tolist() == [[0, 1, 2]]
    nisa.iota(t, pattern)
    assert t.array.tolist() == [[0, 10, 20]]
