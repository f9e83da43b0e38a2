"""nc_n_gather against indexing in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from neuroncore.errors import AccessError


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "float8_e4m3fn_x4"])
@pytest.mark.parametrize("count", [1, 7, 600])
def test_indices_pick_elements_of_their_own_partition(world, nisa, rng, dtype, count):
    data, dst = world.new((5, 3, 4), dtype), world.new((5, count), dtype)
    data.initialize()
    data.array.view(np.uint8)[...] = rng.integers(0, 128, data.array.view(np.uint8).shape)
    picked = rng.integers(0, 12, (5, count))

    nisa.nc_n_gather(dst, data, world.tile(picked, "uint32"))

    flat = data.array.reshape(5, 12)
    expected = np.stack([row[own] for row, own in zip(flat, picked, strict=True)])
    assert dst.array.tobytes() == expected.tobytes()


def test_an_index_past_the_row_is_rejected(world, nisa):
    data, indices = world.tile(np.ones((1, 4))), world.tile([[0, 4]], "uint32")

    with pytest.raises(AccessError, match="an index is 4") as raised:
        nisa.nc_n_gather(world.new((1, 2)), data, indices)
    assert "0 to 3" in str(raised.value)
