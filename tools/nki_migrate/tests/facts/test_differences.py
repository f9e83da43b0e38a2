"""Sizes are spelled as a person writes them: what cancels is not there."""

from __future__ import annotations

import random

import pytest

from nki_migrate.facts.differences import product_of_difference


@pytest.mark.parametrize(
    ("stop", "start", "size"),
    [
        ("(t + 1) * cfg.q", "t * cfg.q", ("cfg.q", True)),
        ("t * q + q", "t * q", ("q", True)),
        ("(t + 2) * q", "q * t", ("2 * q", False)),
        ("(i + 1) * a * b", "i * a * b", ("a * b", False)),
        ("(i + 1) * (n // 4)", "i * (n // 4)", ("n // 4", False)),
        ("(i + 1) * (n // 4) * m", "i * (n // 4) * m", ("m * (n // 4)", False)),
        ("x.shape[0] * (i + 1)", "x.shape[0] * i", ("x.shape[0]", True)),
    ],
)
def test_what_cancels_is_left_out(stop: str, start: str, size: tuple[str, bool]):
    assert product_of_difference(stop, start) == size


@pytest.mark.parametrize(
    ("stop", "start"),
    [
        ("n", "m"),
        ("n + 1", "m"),
        ("t * q", "(t + 1) * q"),
        ("n if n > 2 else 2", "n"),
        ("2 ** n", "n"),
        ("t + 1", "t"),
    ],
)
def test_other_differences_are_not_products(stop: str, start: str):
    assert product_of_difference(stop, start) is None


def test_a_product_has_the_value_of_the_difference():
    rng = random.Random(24)
    values = {name: rng.randint(2, 90) for name in "tqnm"}
    pieces = ["t", "q", "n // 3", "m % 7", "2", "q * n", "(t + 1)"]
    found = 0
    for _ in range(500):
        start = f"{rng.choice(pieces)} * ({rng.choice(pieces)})"
        stop = f"{start} + {rng.choice(pieces)} * ({rng.choice(pieces)})"
        product = product_of_difference(stop, start)
        if product is not None:
            found += 1
            assert eval(product[0], {}, values) == eval(f"{stop} - ({start})", {}, values), product
    assert found > 200
