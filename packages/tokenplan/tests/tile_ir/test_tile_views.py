"""Tile views: the same addresses as the layout, or a reason."""

import random

import numpy as np
import pytest

from neuroncore.layout import Layout, Swizzle
from tokenplan.tile_ir.tile_views import TileView, lower

CASES, SEED = 600, 27


def addresses(view: TileView, tile_index) -> np.ndarray:
    """The addresses of a tile's elements as the view describes them."""
    total, rank = np.asarray(view.offset), len(view.dims)
    for at, dim in enumerate(view.dims):
        index = tile_index[dim.dim] // dim.divisor
        index = index % dim.modulus if dim.modulus else index
        lanes = np.arange(dim.tile)
        flips = [flip for flip in view.flips if flip.target == at]
        along = index * dim.tile + lanes if at == view.rows else None
        for flip in flips:
            source = lanes if flip.is_local else tile_index[flip.dim]
            flipped = (source >> flip.bit & 1) * flip.mask
            if along is None:
                index ^= flipped
            else:
                along = along ^ flipped
        along = index * dim.tile + lanes if along is None else along
        shape = [dim.tile if n == at else 1 for n in range(rank)]
        total = total + (along * dim.stride).reshape(shape)
    return total.reshape(view.tile)


def random_layout(rng: random.Random) -> Layout | None:
    """Dimensions of powers of two, their bits interleaved in memory, some with a swizzle."""
    bits = [rng.randint(1, 4) for _ in range(rng.randint(1, 3))]
    dims: list[tuple[tuple[int, int], ...]] = [()] * len(bits)
    stride = 1
    while any(bits):
        dim = rng.choice([n for n, left in enumerate(bits) if left])
        taken = rng.choice((bits[dim], rng.randint(1, bits[dim])))
        dims[dim] = ((2**taken, stride), *dims[dim])
        bits[dim], stride = bits[dim] - taken, stride << taken
    is_swizzled = rng.random() < 0.7
    numbers = rng.randint(1, 2), rng.randint(0, 3), rng.randint(1, 4)
    try:
        return Layout(tuple(dims), 0, Swizzle.xor(*numbers) if is_swizzled else Swizzle())
    except ValueError:
        return None


def test_views_of_random_layouts_have_the_addresses_of_the_layout():
    rng, kinds = random.Random(SEED), set()
    for _ in range(CASES):
        layout = random_layout(rng)
        if layout is None:
            continue
        tile = [2 ** rng.randint(0, n.bit_length() - 1) for n in layout.shape]
        view, expected = lower(layout, tile), layout.addresses()
        kinds.add(view.kind)
        at = [rng.randrange(n // t) for n, t in zip(layout.shape, tile, strict=True)]
        if view.is_view:
            part = tuple(slice(i * t, (i + 1) * t) for i, t in zip(at, tile, strict=True))
            assert (addresses(view, at) == expected[part]).all(), (layout, tile, view)

    assert kinds == {"partition_view", "gather_scatter_view", "pointer_tile"}


@pytest.mark.parametrize(
    ("layout", "tile", "said"),
    [
        (Layout.of((512, 64)), (64, 64), "partition_view of 2 dimensions"),
        (Layout((((8, 4096), (64, 64)), ((2, 32768), (64, 1)))), (64, 64),
         "partition_view of 3 dimensions"),
        (Layout.of((512, 512), swizzle=Swizzle.xor(1, 6, 6)), (64, 64),
         "pointer tile: address bit 6 is flipped by bit 3 of dimension 0"),
        (Layout.of((512, 512), swizzle=Swizzle.xor(3, 6, 9)), (64, 64),
         "partition_view of 2 dimensions with 3 XOR of index bits"),
        (Layout.of((512, 64), swizzle=Swizzle.xor(3, 6, 6)), (64, 64),
         "gather_scatter_view of 2 dimensions with 3 XOR of index bits"),
        (Layout.of((512, 64), swizzle=Swizzle.xor(1, 3, 3)), (64, 64),
         "pointer tile: address bit 3, inside the tile, is flipped by bit 0 of dimension 0"),
        (Layout.of((4, 8), (-8, 1), 24), (4, 8), "pointer tile: dimension 0 has stride -8, and "
         "strides of a view are positive"),
    ],
)  # fmt: skip
def test_the_verdict_names_the_view_or_the_bits_that_prevent_one(layout, tile, said):
    assert str(lower(layout, tile)) == said


def test_a_tile_has_powers_of_two():
    with pytest.raises(ValueError, match=r"a power of two for each of the 2 dimensions"):
        lower(Layout.of((96, 64)), (48, 64))
