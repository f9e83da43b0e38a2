"""Keys with ints in them give what brackets mean, the first time and remembered."""

from itertools import product

import pytest

from neuroncore.enums import MemorySpace
from neuroncore.errors import AccessError
from neuroncore.machine.core import NeuronCore
from neuroncore.memory.indexing import index
from nki_dtypes import bfloat16, float32

PARTS = (0, 2, slice(None), slice(1, 3), slice(0, 2), slice(2, None))
KEYS = list(product(PARTS, repeat=3))


@pytest.mark.parametrize(
    "space", [MemorySpace.hbm, MemorySpace.sbuf, MemorySpace.psum], ids=lambda s: s.name
)
@pytest.mark.parametrize("dtype", [float32, bfloat16], ids=str)
def test_every_key_gives_the_same_view_both_times(space, dtype):
    tile = NeuronCore().allocate((4, 3, 5), dtype, space)
    tile.initialize()

    for key in KEYS * 2:
        found, expected = tile[key], index(tile, key)
        assert found.spec is expected.spec, key
        assert found.array.__array_interface__ == expected.array.__array_interface__, key
        assert found.storage is tile.storage and found.core is tile.core


@pytest.mark.parametrize("at", [3, -4, True, 1.0])
def test_an_int_outside_or_no_int_is_rejected_after_a_legal_one(at):
    tile = NeuronCore().allocate((4, 3, 5), float32, MemorySpace.sbuf)
    assert tile[:, 1, :].shape == (4, 5)

    with pytest.raises(AccessError):
        tile[:, at, :]
