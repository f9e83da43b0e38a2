"""Digits outside of loops, value by value: what two of them share."""

from itertools import product
from random import Random

from neuroncore.integers import Digit
from neuroncore.program import Affine
from tokenplan import Mode
from tokenplan.footprints import digits_of, least_common, values_of
from tokenplan.kernel.model import Access, Buffer


def random_level(random: Random) -> Digit:
    steps = [(random.randint(2, 7), random.randint(1, 12)) for _ in range(random.randint(0, 2))]
    return Digit(1, Affine(random.randrange(40)), random.randint(1, 4), tuple(steps))


def one_by_one(level: Digit) -> set[int]:
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
    assert values_of(Digit(1, Affine(0, (("k", 1),)), 4)) is None
    assert values_of(Digit(1, Affine(), 1, ((2, 2**20),))) is None
    assert values_of(Digit(1, Affine(), 2, ((600, 3),))) is None
    assert values_of(Digit(1, Affine(), 2**30)) is not None, "one interval is two comparisons"


def random_access(random: Random) -> Access:
    sizes = [(random.randint(1, 4), random.choice((-12, -4, 1, 2, 4, 6, 12, 24, 48))) for _ in "ab"]
    at, width = Affine(random.randrange(200)), random.choice((1, 2, 4, 12, 24))
    shape, strides = tuple(n for n, _ in sizes), tuple(by for _, by in sizes)
    return Access("t", Mode.write, at, shape, strides, width)


def bytes_of(access: Access) -> set[int]:
    steps = product(*map(range, access.shape))
    firsts = [sum(s * i for s, i in zip(access.strides, step, strict=True)) for step in steps]
    return {access.offset.constant + first + n for first in firsts for n in range(access.width)}


def test_digits_of_an_access_that_no_loop_moves_are_its_bytes():
    random, outcomes, buffer = Random(11), set(), Buffer("t", "sbuf", (8, 4, 12), 1)
    for _ in range(3_000):
        access = random_access(random)
        digits = digits_of(access, buffer, {})
        outcomes.add(digits is None)
        if digits is None:
            continue
        assert [digit.radix for digit in digits] == [48, 12, 1]
        by_digit = [[digit.radix * n for n in one_by_one(digit)] for digit in digits]
        assert {sum(byte) for byte in product(*by_digit)} == bytes_of(access), access
    assert outcomes == {True, False}
