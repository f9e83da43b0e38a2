"""Memory of tiles: used again once nothing shares it, never before."""

import gc
import tracemalloc

import numpy as np
import pytest

from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from nki_dtypes import float32

TILE = (128, 512)


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_a_dead_tile_gives_its_memory_to_the_next_one():
    core = NeuronCore()
    first = address(core.allocate(TILE, float32, MemorySpace.sbuf).array)

    assert address(core.allocate(TILE, float32, MemorySpace.sbuf).array) == first


@pytest.mark.parametrize(
    "share",
    [
        lambda tile: tile,
        lambda tile: tile.array,
        lambda tile: tile[0:4, 0:8],
        lambda tile: tile.array[3:5].T,
        lambda tile: tile.storage,
        lambda tile: np.asarray(tile.array).view(np.uint32).reshape(-1)[7:9],
        lambda tile: np.lib.stride_tricks.as_strided(tile.array, (2,), (4,)),
        lambda tile: np.broadcast_to(tile.array[:, :1], TILE),
        lambda tile: memoryview(tile.array),
    ],
    ids=["tile", "array", "slice", "transpose", "storage", "bits", "strided", "repeated", "buffer"],
)
def test_memory_that_anything_still_shares_is_not_given_out(share):
    core = NeuronCore()
    tile = core.allocate(TILE, float32, MemorySpace.sbuf)
    held, taken = share(tile), address(tile.array)
    del tile

    assert address(core.allocate(TILE, float32, MemorySpace.sbuf).array) != taken
    del held


def test_memory_used_again_is_undefined_like_new_memory():
    core = NeuronCore()
    core.allocate(TILE, float32, MemorySpace.sbuf).array[...] = 1.0
    tile = core.allocate(TILE, float32, MemorySpace.sbuf)
    tile.initialize()

    assert np.isnan(tile.array).all()


def test_idle_memory_is_at_most_what_was_in_use_and_ends_with_the_core():
    core = NeuronCore()
    gc.collect()
    tracemalloc.start()
    live = [core.allocate((128, 16384), float32, MemorySpace.sbuf) for _ in range(4)]
    for width in range(15000, 15010):
        core.allocate((128, width), float32, MemorySpace.sbuf)
    peak = tracemalloc.get_traced_memory()[1]
    del live, core
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()

    smallest_tile = 128 * 15000 * 4
    bytes_in_use = 4 * 128 * 16384 * 4 + 128 * 15010 * 4
    assert peak <= 2 * bytes_in_use
    assert left < smallest_tile
