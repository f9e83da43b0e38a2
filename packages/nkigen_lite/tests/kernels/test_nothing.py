"""Arrays without elements: no parameters, no results, no instructions."""

from __future__ import annotations

import numpy as np
import pytest

FUNCTIONS = {
    "computed": lambda x, y: (x + 1, np.exp(x), x.T),
    "looked at": lambda x, y: (y[:0], y[2:2] * 2, y),
    "joined": lambda x, y: (np.concatenate([x, y]), np.stack([x, x])),
    "reduced": lambda x, y: (x.sum(0), x.prod(0), x.sum(-1), x.any(), x.all(0)),
    "multiplied": lambda x, y: (y @ x.T, x.T @ x, x @ y.T),
    "reshaped": lambda x, y: (x.reshape(3, 0, 2), x[None], np.broadcast_to(x, (2, 0, 3))),
}


OF_NUMBERS = ("computed", "multiplied")
"""NumPy computes with bool in other types; products of bool are not translated."""
CASES = [
    (name, dtype)
    for name in FUNCTIONS
    for dtype in ("float32", "int32", "uint8", "bool")
    if dtype != "bool" or name not in OF_NUMBERS
]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_results_have_numpys_shapes_and_values(exactly, name, dtype):
    exactly(FUNCTIONS[name], np.ones((0, 3), dtype), np.ones((4, 3), dtype))


def test_a_kernel_of_nothing_has_no_instructions(exactly):
    kernel = exactly(lambda x: (x * 2, x.sum(-1)), np.zeros((0, 5), np.float32))

    assert kernel.program.parameters == ()
    assert kernel.program.body == ()
    assert kernel.stats.instructions == 0


def test_a_part_of_no_elements_is_written_nowhere(exactly):
    def function(x):
        y = x.copy()
        y[3:3] = 7
        y[1:2] += 1
        return y

    exactly(function, np.arange(8, dtype=np.float32))


def test_what_is_reduced_after_nothing_was_added_up(assert_lowers_right):
    x = np.zeros((3, 0, 2), np.float32)

    assert_lowers_right(lambda x: (x.sum(1).max(1), x.sum(1, keepdims=True).sum((1, 2))), x)
