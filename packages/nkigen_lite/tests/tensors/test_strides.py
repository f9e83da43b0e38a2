"""Whether a reshape is a view, by the layout descriptor, as NumPy decides."""

import random

import numpy as np

from nkigen_lite.tensors.strides import reshaped


def shape_of(size, rng):
    """Random extents of this many elements."""
    found = []
    while size > 1:
        found.append(rng.choice([d for d in range(2, size + 1) if size % d == 0]))
        size //= found[-1]
    return tuple(found)


def test_a_reshape_is_a_view_where_numpy_makes_one():
    rng, views = random.Random(27), 0
    for _ in range(1_000):
        size = rng.choice((6, 12, 24, 60, 64))
        shape, new = shape_of(size, rng), shape_of(size, rng)
        base = np.zeros([n * rng.choice((1, 1, 2)) for n in shape], np.int8)
        array = base[tuple(slice(0, n) for n in shape)]
        array = array.transpose(rng.sample(range(array.ndim), array.ndim))
        expected = array.reshape(new)
        found = reshaped(array.shape, array.strides, new)
        is_view = np.shares_memory(expected, base)
        views += is_view

        assert (found is not None) == is_view, (array.shape, array.strides, new)
        assert not is_view or found == expected.strides
    assert 300 < views < 1_000
