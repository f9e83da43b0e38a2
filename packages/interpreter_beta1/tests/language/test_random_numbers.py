"""nl.rand and nl.dropout: ranges, grids of the dtype, seeds."""

import numpy as np
import pytest

from neuroncore.errors import DTypeError
from neuroncore.machine.backend import CURRENT, Choice
from neuroncore.options import Options
from nki_beta1 import nl

BITS = {"float32": 24, "bfloat16": 8, "float16": 11}
"""Bits of the significand, the leading one included."""


def random_tile(evaluate, dtype, seed=0):
    token = CURRENT.set(Choice("beta1", "0.1", options=Options(random_seed=seed)))
    try:
        return evaluate(lambda x: nl.rand((128, 256), dtype=dtype), np.zeros((1, 1), np.float32))
    finally:
        CURRENT.reset(token)


@pytest.mark.parametrize("name", BITS)
def test_rand_is_uniform_below_one(name, evaluate):
    numbers = random_tile(evaluate, getattr(nl, name))
    wide = numbers.astype(np.float64)

    assert numbers.dtype.name == name
    assert wide.min() >= 0 and wide.max() < 1
    # 32,768 uniform numbers: the mean's standard deviation is 0.29 / 181 = 0.0016; 5 of them,
    # and the grid's half step.
    assert abs(wide.mean() - 0.5) < 0.008 + 2.0 ** -BITS[name]


@pytest.mark.parametrize("name", BITS)
def test_rand_gives_multiples_of_the_last_place(name, evaluate):
    steps = random_tile(evaluate, getattr(nl, name)).astype(np.float64) * 2.0 ** BITS[name]

    np.testing.assert_array_equal(steps, np.round(steps))


def test_rand_follows_the_seed(evaluate):
    first, again, other = (random_tile(evaluate, nl.float32, seed) for seed in (1, 1, 2))

    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.99


def test_rand_gives_no_integers(evaluate):
    with pytest.raises(DTypeError, match=r"nl\.rand gives no int32"):
        random_tile(evaluate, nl.int32)


def test_dropout_zeroes_a_share_and_rescales_nothing(evaluate):
    x = np.full((128, 256), 3, np.float32)

    kept = evaluate(lambda t: nl.dropout(t, 0.25), x)

    assert set(np.unique(kept)) == {0, 3}
    assert abs((kept == 0).mean() - 0.25) < 0.012  # 5 standard deviations of 32,768 draws


def test_dropout_takes_a_rate_per_partition(evaluate):
    x, rates = np.ones((4, 64), np.float32), np.array([[0], [1], [0], [1]], np.float32)

    kept = evaluate(lambda t, r: nl.dropout(t, rate=r), x, rates)

    np.testing.assert_array_equal(kept, np.broadcast_to(1 - rates, (4, 64)))


@pytest.mark.parametrize("as_tile", [False, True], ids=["a number", "a tile"])
def test_a_seed_starts_the_stream_anew(as_tile, evaluate):
    def twice(seed):
        nl.random_seed(seed if as_tile else 42)
        first = nl.rand((4, 8))
        nl.random_seed(seed if as_tile else 42, mask=True)
        again, other = nl.rand((4, 8)), nl.rand((4, 8))
        return nl.copy(nl.equal(first, again) * 1.0 - nl.equal(first, other) * 2.0)

    np.testing.assert_array_equal(evaluate(twice, np.array([[42]], np.int32)), np.ones((4, 8)))
