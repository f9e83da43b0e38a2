"""Digits outside of loops, value by value: what two of them share."""

from itertools import product
from random import Random

from neuroncore.program import Affine
from tokenplan.footprints import Level, least_common, values_of


def random_level(random: Random) -> Level:
    steps = [(random.randint(2, 7), random.randint(1, 12)) for _ in range(random.randint(0, 2))]
    return Level(1, Affine(random.randrange(40)), random.randint(1, 4), tuple(steps))


def one_by_one(level: Level) -> set[int]:
    steps = product(*(range(0, count * by, by) for count, by in level.steps))
    firsts = [level.offset.constant + sum(step) for step in steps]
    return {first + n for first in firsts for n in range(level.extent)}


def test_two_digits_share_the_least_value_that_both_take():
    random, outcomes = Random(9), set()
    for _ in range(3_000):
        a, b = random_level(random), random_level(random)
        one, other = values_of(a), values_of(b)
        assert one is not None
        assert other is not None
        expected = min(one_by_one(a) & one_by_one(b), default=None)
        assert least_common(one, other) == least_common(other, one) == expected, (a, b)
        outcomes.add(expected is None)
    assert outcomes == {True, False}


def test_what_moves_reaches_far_or_has_many_values_is_not_gone_through():
    assert values_of(Level(1, Affine(0, (("k", 1),)), 4)) is None
    assert values_of(Level(1, Affine(), 1, ((2, 2**20),))) is None
    assert values_of(Level(1, Affine(), 2, ((600, 3),))) is None
    assert values_of(Level(1, Affine(), 2**30)) is not None, "one interval is two comparisons"
