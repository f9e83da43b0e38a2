"""Elements that nothing has written, around the part that an instruction is about to write."""

import numpy as np
import pytest

from neuroncore.enums import MemorySpace
from neuroncore.machine.core import NeuronCore
from neuroncore.memory.storage import INTEGER_POISON
from neuroncore.options import Options
from nki_dtypes import float32, int16

BOXES = [
    (slice(0, 6), slice(0, 8)),
    (slice(2, 5), slice(0, 8)),
    (slice(0, 6), slice(3, 7)),
    (slice(1, 2), slice(7, 8)),
]


@pytest.mark.parametrize("box", BOXES, ids=["all", "rows", "columns", "corner"])
@pytest.mark.parametrize(
    ("kind", "options", "undefined"),
    [
        (float32, Options(), np.nan),
        (int16, Options(), INTEGER_POISON),
        (float32, Options(uninitialized="zero"), 0),
    ],
    ids=["float", "integer", "zero"],
)
def test_everything_outside_the_box_is_undefined_and_the_box_untouched(
    box, kind, options, undefined
):
    tile = NeuronCore(options=options).allocate((6, 8), kind, MemorySpace.sbuf)
    tile.array[...] = 77
    tile.initialize_outside(box)

    expected = np.full((6, 8), undefined, tile.array.dtype)
    expected[box] = 77
    np.testing.assert_array_equal(tile.array, expected)


def test_initialized_memory_stays_as_it_is():
    tile = NeuronCore().allocate((6, 8), float32, MemorySpace.sbuf)
    tile.claim()
    tile.array[...] = 77
    tile.initialize_outside((slice(0, 1), slice(0, 1)))

    assert (tile.array == 77).all()
