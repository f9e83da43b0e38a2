"""Slices where nothing is computed: found once for all tensors that look alike, always checked."""

from __future__ import annotations

import random

import pytest

from neuroncore.errors import AccessError
from neuroncore.machine.observe import Watcher
from neuroncore.memory import View


class Onlooker(Watcher):
    needs_values = False


@pytest.fixture
def abstract(make_world):
    return make_world(watchers=[Onlooker()])


def test_tensors_that_look_alike_are_cut_alike(abstract):
    first, second = abstract.new((128, 4, 32)), abstract.new((128, 4, 32))

    cut = second[32:64, 2, 8:16]

    assert first[32:64, 2, 8:16].spec is cut.spec
    assert (cut.shape, cut.offset, cut.storage) == ((32, 8), 32 * 128 + 2 * 32 + 8, second.storage)


def test_what_a_key_gave_depends_on_what_was_cut(abstract):
    near, far = abstract.new((128, 64)), abstract.new((128, 64), space="hbm")
    bank = abstract.new((128, 64), space="psum")

    cuts = [near[0:32, 8:16], far[0:32, 8:16], bank[0:32, 8:16], near[0:64, 8:16][0:32, 8 - 8 : 8]]

    assert len({cut.spec for cut in cuts}) == 3
    assert [cut.offset for cut in cuts] == [8] * 4


@pytest.mark.parametrize("key", [(True, 0), (slice(False, 1), 0), (slice(0, 1.0), 0), (1, 64)])
def test_a_key_that_equals_a_legal_one_or_comes_again_is_rejected(abstract, key):
    """True and 1.0 are found in a dictionary under 1."""
    for _ in range(2):
        tensor = abstract.new((128, 64))
        assert isinstance(tensor[1, 0], View)
        assert isinstance(tensor[0:1, 0], View)
        with pytest.raises(AccessError):
            tensor[key]


def test_cuts_are_those_of_a_core_that_computes(abstract, make_world):
    chance, computing = random.Random(4), make_world()
    spaces = ("sbuf", "psum", "hbm")
    for _ in range(300):
        shape = (chance.choice([1, 32, 128]), *chance.choices([1, 2, 8], k=chance.randint(1, 2)))
        keys = [_key(chance, shape) for _ in range(2)]
        for space in chance.choices(spaces, k=2):
            found = [_cut(world.new(shape, space=space), keys) for world in (abstract, computing)]
            assert found[0] == found[1], (shape, keys, space)


def _key(chance: random.Random, shape: tuple[int, ...]) -> object:
    """Ints, slices, dots; now and then outside."""
    items: list[object] = []
    for size in shape[: chance.randint(1, len(shape))]:
        start = chance.randint(-1, size)
        stop = chance.choice([None, start + 1, size])
        items.append(chance.choice([start, slice(start, stop), slice(None), slice(0, size, 2)]))
    return tuple(items) if len(items) > 1 or chance.random() < 0.5 else items[0]


def _cut(tensor: View, keys: list[object]) -> object:
    """Spec and offset after both keys, or what is said instead."""
    try:
        cut = tensor[keys[0]]
        cut = cut[keys[1]] if len(cut.shape) == len(tensor.shape) else cut
    except AccessError as rejected:
        return str(rejected)
    return cut.spec, cut.offset
