"""dropout: what it keeps is untouched, how much it drops is as likely as asked.

Statistical bounds are six standard deviations of a binomial: a false alarm in 5e8 runs, and the
seed is fixed anyway.
"""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import AttributeValueError
from neuroncore.options import Options


def dropped(world, nisa, values, prob, shape=(128, 512)):
    dst = world.new(shape)
    nisa.dropout(dst, world.tile(np.ones(shape)), prob)
    return values(dst) == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3", "int8", "uint32"])
def test_elements_are_kept_as_they_are_or_zero(world, nisa, rng, values, dtype):
    data, dst = world.tile(rng.integers(1, 99, (4, 3, 50)), dtype), world.new((4, 150), dtype)

    nisa.dropout(dst, data, 0.5)

    kept = values(dst) != 0
    np.testing.assert_array_equal(values(dst)[kept], values(data).reshape(4, 150)[kept])
    assert 0 < kept.sum() < kept.size


@pytest.mark.parametrize("prob", [0.0, 0.1, 0.5, 0.93, 1.0])
def test_the_share_of_zeros_is_the_probability(world, nisa, values, prob):
    gone = dropped(world, nisa, values, prob)

    assert abs(gone.mean() - prob) <= 6 * np.sqrt(prob * (1 - prob) / gone.size)


def test_partitions_have_their_own_probability_and_their_own_stream(world, nisa, values):
    prob = np.linspace(0, 1, 128)[:, None]
    gone = dropped(world, nisa, values, world.tile(prob))

    bound = 6 * np.sqrt(prob * (1 - prob) / 512)
    assert (np.abs(gone.mean(1, keepdims=True) - prob) <= bound).all()
    halves = dropped(world, nisa, values, 0.5)
    agree = (halves[:-1] == halves[1:]).mean(1)  # neighbours agree as often as coins do
    assert (np.abs(agree - 0.5) <= 6 * 0.5 / np.sqrt(512)).all()


def test_a_run_is_reproducible_calls_differ_and_seeds_differ(make_world, nisa, values):
    first, again, other = make_world(), make_world(), make_world(options=Options(random_seed=1))

    masks = [dropped(w, nisa, values, 0.5, (8, 64)) for w in (first, again, other, first)]

    assert (masks[0] == masks[1]).all()
    assert (masks[0] != masks[2]).any()
    assert (masks[0] != masks[3]).any()


@pytest.mark.parametrize("prob", [-0.1, 1.5, np.nan])
def test_a_probability_lies_between_0_and_1(world, nisa, prob):
    with pytest.raises(AttributeValueError, match="prob is not a probability"):
        nisa.dropout(world.new((1, 2)), world.tile([[1.0, 2.0]]), prob)
