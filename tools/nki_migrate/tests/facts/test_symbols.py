"""Symbolic numbers: equality by normal form, order by proof; checked against plain integers."""

import random

import pytest

from nki_migrate.facts.symbols import Facts, Poly

N, M = Poly.atom("n"), Poly.atom("m")


def number(value: int) -> Poly:
    return Poly.number(value)


def evaluate(poly: Poly, values: dict[str, int]) -> int:
    total = 0
    for monomial, coefficient in poly.terms:
        for atom in monomial:
            coefficient *= values[atom]
        total += coefficient
    return total


@pytest.mark.parametrize("seed", range(20))
def test_arithmetic_agrees_with_integers(seed):
    rng = random.Random(seed)
    values = {"n": rng.randrange(-9, 9), "m": rng.randrange(-9, 9)}
    a = N * number(rng.randrange(9)) + number(rng.randrange(9))
    b = M * N + number(rng.randrange(9))

    assert evaluate(a * b - a, values) == evaluate(a, values) * (evaluate(b, values) - 1)


def test_quotient_divides_out_what_divides():
    facts = Facts()

    assert facts.quotient(N * number(256), number(128)) == N * number(2)
    assert facts.quotient(number(300), number(128)) == number(2)
    assert facts.quotient(number(300), number(128), up=True) == number(3)


def test_two_spellings_of_a_rounded_up_quotient_are_equal():
    facts = Facts(positive={"n"})

    assert facts.quotient(N + number(127), number(128)) == facts.quotient(N, number(128), up=True)


def _loop(facts: Facts, count: Poly) -> Poly:
    facts.ranges["i"] = (number(0), count - number(1))
    return Poly.atom("i")


def test_last_tile_of_a_rounded_up_loop_is_not_empty():
    facts = Facts(positive={"n"})
    i = _loop(facts, facts.quotient(N, number(128), up=True))

    assert facts.proves_at_least(N - i * number(128), 1)
    assert not facts.proves_at_least(N - i * number(128), 2)
    assert not facts.proves_at_least(N - i * number(128), 128)


def test_tiles_of_a_rounded_down_loop_are_full():
    facts = Facts(positive={"n"})
    i = _loop(facts, facts.quotient(N, number(128)))

    assert facts.proves_at_least(N - i * number(128), 128)


def test_nothing_is_proved_about_an_unbounded_loop():
    facts = Facts(positive={"n"})
    i = _loop(facts, number(8))

    assert not facts.proves_at_least(N - i * number(128), 1)


@pytest.mark.parametrize("n", range(1, 600, 37))
@pytest.mark.parametrize("up", [True, False])
def test_proved_bounds_hold_for_numbers(n, up):
    facts = Facts(positive={"n"})
    count = -(-n // 128) if up else n // 128
    i = _loop(facts, facts.quotient(N, number(128), up=up))
    room = N - i * number(128)

    worst = min((n - k * 128 for k in range(count)), default=10**9)
    proved = max(b for b in (-(10**6), 1, 128) if facts.proves_at_least(room, b))
    assert proved <= worst


def test_asserted_divisibility_makes_sizes_equal():
    facts = Facts(positive={"n"}, divisible={(N, 128)})

    assert facts.same(facts.quotient(N, number(128)) * number(128), N)
