"""nc_find_index8 and nc_match_replace8 against a search in plain Python."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from neuroncore.instructions import INSTRUCTIONS
from neuroncore.isa.functions import make_function
from neuroncore.options import Options
from neuroncore.surface import signature


def searched(row, vals, columns):
    """Places of `vals` in `row`, None where missing: each column takes the first one left."""
    left, places = list(row), [None] * 8
    for j in columns:
        if vals[j] in left:
            places[j] = left.index(vals[j])  # pyrefly: ignore
            left[places[j]] = None
    return places


@pytest.fixture(scope="module")
def nisa_05():
    return SimpleNamespace(
        nc_match_replace8=make_function(
            INSTRUCTIONS["nc_match_replace8"],
            signature("nc_match_replace8", "0.5"),  # pyrefly: ignore
        )
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize(("index", "missing"), [("uint32", 2**32 - 1), ("uint16", 2**16 - 1)])
@pytest.mark.parametrize("free", [8, 40, 513])
def test_places_are_found_or_all_ones(world, nisa, rng, values, dtype, index, missing, free):
    data = world.tile(rng.integers(0, 12, (6, free)), dtype)
    vals = world.tile(rng.integers(0, 14, (6, 8)), dtype)
    dst = world.new((6, 8), index)

    nisa.nc_find_index8(dst, data, vals)

    found = [searched(r, v, range(8)) for r, v in zip(values(data), values(vals), strict=True)]
    assert values(dst).tolist() == [[missing if p is None else p for p in row] for row in found]


def test_a_missing_value_is_0_where_the_old_simulator_is_asked_for(make_world, nisa, values):
    world = make_world(options=Options(missing_index="zero"))
    dst = world.new((1, 8), "uint32")

    nisa.nc_find_index8(dst, world.tile(np.arange(8.0)[None]), world.tile(np.full((1, 8), 9.0)))

    assert (values(dst) == 0).all()


def test_a_nan_is_never_found(world, nisa, values):
    row, dst = np.full((1, 8), np.nan), world.new((1, 8), "uint16")

    nisa.nc_find_index8(dst, world.tile(row), world.tile(row))

    assert (values(dst) == 65535).all()


@pytest.mark.parametrize("columns", [range(7, -1, -1), range(8)], ids=["0.6", "0.5"])
@pytest.mark.parametrize("free", [8, 40, 513])
def test_matches_are_replaced_and_their_places_given(
    world, nisa, nisa_05, rng, values, columns, free
):
    data, vals = world.tile(rng.integers(0, 9, (6, free))), world.tile(rng.integers(0, 9, (6, 8)))
    dst, places = world.new((6, free)), world.new((6, 8), "uint32")
    version = nisa if columns[0] else nisa_05

    version.nc_match_replace8(dst, data, vals, -1.5, places)

    expected, found = values(data), []
    for row, wanted in zip(expected, values(vals), strict=True):
        found.append(searched(row, wanted, columns))
        row[[p for p in found[-1] if p is not None]] = -1.5
    np.testing.assert_array_equal(values(dst), expected)
    assert values(places).tolist() == [[2**32 - 1 if p is None else p for p in r] for r in found]


def test_replacing_may_be_in_place_and_repeated_to_get_the_next_eight(world, nisa, values):
    row = np.random.default_rng(3).permutation(40).astype(np.float32)[None]
    data, top = world.tile(row), [world.new((1, 8)) for _ in range(2)]

    nisa.max8(top[0], data)
    nisa.nc_match_replace8(data, data, top[0], -np.inf)
    nisa.max8(top[1], data)

    assert np.concatenate([values(t)[0] for t in top]).tolist() == list(range(39, 23, -1))
