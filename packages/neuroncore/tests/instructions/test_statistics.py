"""bn_stats and bn_aggr against float64 moments.

Tolerances, with u = 2⁻²⁴: a float32 mean of n numbers is within (n + 2)·u·mean|x| =: d of the exact
one, and the squares around it sum to the exact moment M within (n + 6)·u·M + n·d².
"""

from __future__ import annotations

import numpy as np
import pytest

U = 2.0**-24


def triples(x):
    """[n, mean, n·variance] of even and of odd columns, in float64."""
    parts = []
    for half in (x[:, 0::2], x[:, 1::2]):
        mean = half.mean(1)
        parts += [np.full(len(x), half.shape[1]), mean, ((half - mean[:, None]) ** 2).sum(1)]
    return np.stack(parts, axis=1)


def merged(t):
    """[mean, variance] of triples (P, T, 3), in float64."""
    n, m, s = t[..., 0], t[..., 1], t[..., 2]
    mean = (n * m).sum(1) / n.sum(1)
    return np.stack([mean, (s + n * (m - mean[:, None]) ** 2).sum(1) / n.sum(1)], axis=1)


@pytest.mark.parametrize("free", [2, 3, 8, 511, 512])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_bn_stats_measures_even_and_odd_elements(world, nisa, rng, values, free, dtype):
    data, dst = world.tile(rng.normal(3, 20, (5, free)), dtype), world.new((5, 6))

    nisa.bn_stats(dst, data)

    exact, n = triples(values(data)), free // 2 + 1
    off = (n + 2) * U * np.abs(values(data)).max(1)
    bound = np.zeros((5, 6))
    bound[:, [1, 4]] = off[:, None]
    bound[:, [2, 5]] = (n + 6) * U * exact[:, [2, 5]] + n * off[:, None] ** 2
    assert (np.abs(values(dst) - exact) <= bound).all()


def test_equal_elements_have_no_variance_however_large(world, nisa, values):
    dst = world.new((1, 6))

    nisa.bn_stats(dst, world.tile(np.full((1, 512), 2.0**20 + 1)))

    assert values(dst)[0].tolist() == [256, 2**20 + 1, 0, 256, 2**20 + 1, 0]


@pytest.mark.parametrize("chunks", [1, 2, 5])
def test_aggregated_chunks_give_the_moments_of_the_whole(world, nisa, rng, values, chunks):
    data = rng.normal(-2, 3, (4, chunks * 64)).astype(np.float32)
    stats, dst = world.new((4, chunks, 6)), world.new((4, 2))

    for i in range(chunks):
        nisa.bn_stats(stats[:, i : i + 1, :], world.tile(data[:, i * 64 : (i + 1) * 64]))
    nisa.bn_aggr(dst, stats)

    whole, n = np.float64(data), chunks * 64
    off = (n + 2) * U * np.abs(whole).max(1)
    bound = np.stack([off, (n + 6) * U * whole.var(1) + off**2 * n], axis=1) * 2  # twice rounded
    assert (np.abs(values(dst) - np.stack([whole.mean(1), whole.var(1)], 1)) <= bound).all()


def test_bn_aggr_weighs_triples_by_their_counts(world, nisa, rng, values):
    t = np.float32(np.abs(rng.normal(5, 2, (3, 4, 3))))
    dst = world.new((3, 2))

    nisa.bn_aggr(dst, world.tile(t))

    np.testing.assert_allclose(values(dst), merged(np.float64(t)), rtol=32 * U)


def test_results_are_rounded_to_dst(world, nisa, values, rounded):
    data, wide, narrow = world.tile([[1.0, 2.0, 4.1]]), world.new((1, 6)), world.new((1, 6), "int8")

    nisa.bn_stats(wide, data)
    nisa.bn_stats(narrow, data)

    np.testing.assert_array_equal(values(narrow), rounded(values(wide), "int8"))
