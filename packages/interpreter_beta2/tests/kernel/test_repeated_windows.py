"""Windows of a tensor that a kernel names again: their specs are kept, and mean the same."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import AccessError

X = np.arange(4 * 6, dtype=np.float32).reshape(4, 6)
AGAIN = 3  # the first time a window is checked, later its spec is known


def test_a_window_shows_what_its_tensor_holds_now(every):
    def kernel(x):
        t = every.tile(x)
        for value in range(AGAIN):
            every.nisa.memset(dst=t[0:4, 1:3], value=float(value))
        return every.out(t)

    expected = X.copy()
    expected[:, 1:3] = AGAIN - 1
    np.testing.assert_array_equal(every.run(kernel, X), expected)


def test_equal_windows_of_two_tensors_are_two_views(now):
    def kernel(x, y):
        tiles = [now.tile(x), now.tile(y)]
        out = []
        for _ in range(AGAIN):
            out = [now.out(t[0:2, 2:5]) for t in tiles]
        return tuple(out)

    one, other = now.run(kernel, X, X + 100)

    np.testing.assert_array_equal(one, X[:2, 2:5])
    np.testing.assert_array_equal(other, X[:2, 2:5] + 100)


@pytest.mark.parametrize("bound", [4.0, np.float64(4), "4"])
def test_a_bound_that_is_not_an_integer_is_rejected_however_often_the_window_was_named(now, bound):
    def kernel(x):
        t = now.tile(x)
        for _ in range(AGAIN):
            t[0:4, 2:4]
        return t[0:4, 2:bound]

    with pytest.raises(AccessError, match="indexed with a"):
        now.run(kernel, X)


def test_a_step_is_not_forgotten_where_the_bounds_were_named_before(now):
    def kernel(x):
        t = now.tile(x)
        for _ in range(AGAIN):
            t[0:4, 0:6]
        return now.out(t[0:4, 0:6:2])

    np.testing.assert_array_equal(now.run(kernel, X), X[:, ::2])
