"""Generator states against Marsaglia's generator in Python integers."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.enums import Engine
from neuroncore.errors import EngineError, MemorySpaceError

MASK = 2**32 - 1
ENGINES = pytest.mark.parametrize(("engine", "width"), [(Engine.gpsimd, 6), (Engine.vector, 24)])


@pytest.fixture
def trn3(make_world):
    return make_world("trn3")


def xorwow(words, count):
    """Numbers, and the words afterwards."""
    x, y, z, w, v, d = map(int, words)
    numbers = []
    for _ in range(count):
        t = x ^ (x >> 2)
        x, y, z, w = y, z, w, v
        v = (v ^ (v << 4) ^ t ^ (t << 1)) & MASK
        d = (d + 362437) & MASK
        numbers.append((v + d) & MASK)
    return numbers, [x, y, z, w, v, d]


def states(world, nisa, engine, width, lanes=128):
    """(lanes, states, 6) words."""
    dst = world.new((lanes, width), "uint32")
    nisa.rand_get_state(dst, engine)
    return dst.array.reshape(lanes, -1, 6).copy()


def numbers(world, nisa, engine, shape):
    dst = world.new(shape, "uint32")
    nisa.rng(dst, engine)
    return dst.array.tolist()


@ENGINES
def test_a_lane_gives_the_numbers_of_its_states_in_turn(trn3, nisa, engine, width):
    before = states(trn3, nisa, engine, width)
    drawn = numbers(trn3, nisa, engine, (128, 10))

    for lane, own in zip(drawn, before, strict=True):
        streams = [xorwow(words, 10)[0] for words in own]
        assert lane == [streams[i % len(own)][i // len(own)] for i in range(10)]


@ENGINES
def test_states_move_on_with_the_numbers_drawn(trn3, nisa, engine, width):
    before = states(trn3, nisa, engine, width)
    numbers(trn3, nisa, engine, (64, 8))
    after = states(trn3, nisa, engine, width)

    steps = 8 * 6 // width
    for old, new in zip(before[:64].reshape(-1, 6), after[:64].reshape(-1, 6), strict=True):
        assert xorwow(old, steps)[1] == new.tolist()
    assert (before[64:] == after[64:]).all()  # lanes that drew nothing


@ENGINES
def test_no_two_lanes_start_in_the_same_state(trn3, nisa, engine, width):
    words = states(trn3, nisa, engine, width).reshape(-1, 6)

    assert len(np.unique(words, axis=0)) == len(words)
    assert (words[:, :5] != 0).any(axis=1).all()


@ENGINES
def test_a_stored_state_brings_the_same_numbers_back(trn3, nisa, engine, width):
    stored = trn3.new((128, width), "uint32")

    nisa.rand_get_state(stored, engine)
    first = numbers(trn3, nisa, engine, (128, 9))
    nisa.rand_set_state(stored, engine)

    assert numbers(trn3, nisa, engine, (128, 9)) == first


def test_a_seed_starts_the_vector_generator_anew(world, nisa):
    def after(seed, dtype="uint32"):
        nisa.set_rng_seed(world.tile([[seed]], dtype))
        return numbers(world, nisa, Engine.vector, (4, 8))

    assert after(7) == after(7) == after(7, "int32")
    assert after(7) != after(8)


def test_vector_states_come_with_gen4(make_world, nisa):
    world = make_world("trn2")

    with pytest.raises(EngineError, match="the vector engine of trn2 does not give its states"):
        nisa.rand_get_state(world.new((1, 24), "uint32"), Engine.vector)


def test_states_came_from_psum_in_02_only(trn3, nisa, nisa_02):
    words = trn3.tile(np.ones((4, 24), int), "uint32", "psum")

    nisa_02.rand_set_state(words, Engine.vector)
    with pytest.raises(MemorySpaceError, match="src_seeds is in PSUM"):
        nisa.rand_set_state(words, Engine.vector)
