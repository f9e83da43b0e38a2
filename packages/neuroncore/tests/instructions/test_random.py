"""rng and rand2, statistically.

Bounds are six standard deviations; seeds are fixed, so a test that passes goes on passing.
"""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import Engine
from neuroncore.errors import AttributeValueError, EngineError, UnsupportedError
from neuroncore.options import Options


@pytest.fixture
def trn3(make_world):
    return make_world("trn3")


def bits(world, nisa, shape=(128, 512), dtype="uint32", engine=Engine.vector):
    dst = world.new(shape, dtype)
    nisa.rng(dst, engine)
    return dst.array.copy()


def test_engines_and_cores_have_their_own_generators(make_world, nisa):
    world, again = make_world(), make_world()
    vector, gpsimd = bits(world, nisa), bits(world, nisa, engine=Engine.gpsimd)

    assert (vector != gpsimd).any()
    assert (bits(again, nisa) == vector).all()
    assert (bits(make_world(options=Options(random_seed=5)), nisa) != vector).any()


# -- the numbers ----------------------------------------------------------------------------------


def test_every_bit_is_a_fair_coin_in_every_lane(world, nisa):
    numbers = bits(world, nisa)

    ones = np.stack([(numbers >> np.uint32(b)) & 1 for b in range(32)]).mean(2)
    assert np.abs(ones - 0.5).max() <= 6 * 0.5 / np.sqrt(512)


def test_neighbours_are_uncorrelated(world, nisa):
    x = bits(world, nisa).astype(np.float64)
    x -= x.mean()

    for shifted in (x[:, 1:] * x[:, :-1], x[1:] * x[:-1], x[:, 4:] * x[:, :-4]):
        assert abs(shifted.mean() / x.var()) <= 6 / np.sqrt(shifted.size)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_narrow_integers_are_the_low_bits(make_world, nisa, dtype):
    wide, narrow = (bits(make_world(), nisa, (3, 7), kind) for kind in ("uint32", dtype))

    assert narrow.tolist() == wide.astype(narrow.dtype).tolist()


def test_values_are_uniform_between_min_and_max(trn3, nisa, values):
    low, high = (
        trn3.tile(np.linspace(-5, 0, 128)[:, None]),
        trn3.tile(np.linspace(1, 9, 128)[:, None]),
    )
    dst = trn3.new((128, 512))

    nisa.rand2(dst, low, high)

    share = (values(dst) - values(low)) / (values(high) - values(low))
    assert (values(dst) >= values(low)).all()
    assert (values(dst) <= values(high)).all()
    assert abs(share.mean() - 0.5) <= 6 / np.sqrt(12 * share.size)
    counts = np.bincount((share * 16).astype(int).clip(0, 15).ravel(), minlength=16)
    expected = share.size / 16
    assert ((counts - expected) ** 2 / expected).sum() <= 15 + 6 * np.sqrt(2 * 15)


@pytest.mark.parametrize("dtype", ["float8_e4m3", "float16", "tfloat32", "int8", "uint32"])
def test_values_are_rounded_to_dst(make_world, nisa, values, rounded, dtype):
    exact, dst = (make_world("trn3").new((4, 50), kind) for kind in ("float32", dtype))

    nisa.rand2(exact, -3.0, 90.0)
    nisa.rand2(dst, -3.0, 90.0)

    np.testing.assert_array_equal(values(dst), rounded(values(exact), dtype))


# -- what is rejected ------------------------------------------------------------------------------


def test_min_lies_below_max(trn3, nisa):
    with pytest.raises(AttributeValueError, match="min is not below max"):
        nisa.rand2(trn3.new((1, 4)), 1.0, 1.0)


def test_generations_have_what_documents_give_them(make_world, nisa):
    old, new = make_world("trn1"), make_world("trn2")

    with pytest.raises(EngineError, match="the gpsimd engine of trn1 has no generator"):
        nisa.rng(old.new((1, 4), "uint32"), Engine.gpsimd)
    with pytest.raises(UnsupportedError, match="trn2 has no rand2"):
        nisa.rand2(new.new((1, 4)), 0.0, 1.0)
