"""Choices and what decompose makes of functions that no engine has."""

from __future__ import annotations

import numpy as np
import pytest


def test_choices_between_tiles_and_numbers(assert_lowers_right, normal):
    x, y = normal(130, 40), normal(130, 40, seed=1)
    assert_lowers_right(
        lambda x, y: (np.where(x < y, x, y), np.where(x > 0, x, 0.5), np.where(x > 0, 1, y)), x, y
    )
    assert_lowers_right(lambda x, y: np.where((x < y) & ~(x > 0), x * 2, y + 1) - x, x, y)
    assert_lowers_right(lambda x: np.where(x > 0, x, 0).sum(-1) + np.clip(x, -0.5, 0.5).max(-1), x)


def test_a_condition_that_is_the_same_for_all_rows(assert_lowers_right, normal):
    assert_lowers_right(lambda x, y: np.where(x > 0, y, 0.5), normal(40, seed=1), normal(130, 40))


def test_the_place_of_a_choice_is_given_away_once(assert_lowers_right, normal):
    def function(x, y):
        size = np.abs(x) + 1
        return np.where(x < y, x, y), x / size, y / size, x + x

    assert_lowers_right(function, normal(1), normal(1, seed=1))
    assert_lowers_right(function, normal(130, 3), normal(130, 3, seed=1))


def test_a_choice_between_what_is_not_a_number(assert_lowers_right):
    x = np.array([[1.0, -1.0, 4.0], [0.0, 2.0, -3.0]], np.float32)
    assert_lowers_right(lambda x: np.where(x > 0, np.sqrt(x), 0), x)


@pytest.mark.parametrize(
    "function", [np.floor, np.ceil, np.rint, np.trunc], ids=lambda f: f.__name__
)
def test_roundings_are_exact(assert_lowers_right, normal, function):
    assert_lowers_right(function, normal(64, 33) * 8, roundings=0)


@pytest.mark.parametrize("function", [np.sin, np.cos], ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [1, 1e3, 1e6])
def test_sine_and_cosine_of_large_angles(assert_lowers_right, normal, function, size):
    x = np.clip(normal(130, 30) / 3, -1, 1).astype(np.float32) * np.float32(size)
    assert_lowers_right(function, x, roundings=3e-7 * 2**24)
