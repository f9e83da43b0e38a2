"""The places in memory of tensors with an address."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from neuroncore.effects import absolute, footprint
from neuroncore.enums import MemorySpace
from neuroncore.machine.accesses import footprint_of
from neuroncore.machine.core import NeuronCore
from neuroncore.memory import Storage
from neuroncore.targets import TARGETS
from nki_dtypes import resolve

# No clock decides: the same examples every time, however slow the machine.
CASES = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

TRN2 = TARGETS["trn2"]
SBUF_ROW, PSUM_ROW = 224 * 1024, 16 * 1024  # bytes per partition [NKI architecture guide, trn2]


def placed(view):
    (found,) = footprint_of(view)
    (where,) = absolute(view.storage, found, TRN2)
    return where


def test_a_tile_lies_in_its_partitions_from_its_byte_on():
    core = NeuronCore("trn2")
    tile = core.allocate((32, 64), "float32", MemorySpace.sbuf, address=(64, 1024))

    assert placed(tile) == footprint(64 * SBUF_ROW + 1024, (32, 256), (SBUF_ROW, 1), 1)


def test_banks_of_psum_do_not_meet_and_one_bank_meets_itself():
    core = NeuronCore("trn2")
    first, again, second = (
        core.allocate((128, 512), "float32", MemorySpace.psum, address=(0, byte))
        for byte in (0, 0, 2048)
    )
    a, b, c = map(placed, (first, again, second))

    assert a == footprint(0, (128, 2048), (PSUM_ROW, 1), 1)
    assert a.overlaps(b) and not a.overlaps(c)


def test_columns_of_differently_shaped_tiles_meet_where_their_bytes_do():
    core = NeuronCore("trn2")
    wide = core.allocate((128, 64), "float32", MemorySpace.sbuf, address=(0, 0))
    narrow = core.allocate((64, 8), "bfloat16", MemorySpace.sbuf, address=(64, 128))

    assert placed(wide[64:128, 32:36]).overlaps(placed(narrow))
    assert not placed(wide[64:128, 0:32]).overlaps(placed(narrow))
    assert not placed(wide[0:64]).overlaps(placed(narrow))


DIMENSION = st.tuples(st.integers(1, 6), st.integers(0, 90))


def flat_bytes(found):
    steps = [0]
    for size, stride in zip(found.shape, found.strides, strict=True):
        steps = [s + i * stride for s in steps for i in range(size)]
    return {found.offset + s + b for s in steps for b in range(found.itemsize)}


@given(st.integers(2, 24), st.integers(0, 40), st.lists(DIMENSION, max_size=3), st.integers(1, 60))
@settings(CASES)
@example(12, 2, [(4, 4)], 3)  # equal steps in each row, of which one crosses into the next
def test_every_byte_of_any_footprint_is_placed(row, offset, dims, width):
    memory = np.zeros(0, np.uint8)  # only its description matters
    tensor = Storage(memory, (96, row), resolve("uint8"), MemorySpace.sbuf, "t", (32, 4096))
    found = footprint(offset, tuple(n for n, _ in dims), tuple(s for _, s in dims), width)

    parts = absolute(tensor, found, TRN2)

    wanted = {(32 + b // row) * SBUF_ROW + 4096 + b % row for b in flat_bytes(found)}
    assert set().union(*map(flat_bytes, parts)) == wanted


@pytest.mark.parametrize("space", [MemorySpace.sbuf, MemorySpace.hbm])
def test_a_tensor_without_address_is_nowhere(space):
    tensor = NeuronCore().allocate((4, 4), "float32", space, name="acc")
    with pytest.raises(ValueError, match="acc has no address in SBUF or PSUM; expected one"):
        placed(tensor)
