"""Which layouts an access pattern can say, and what blocks the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neuroncore.enums import MemorySpace
from neuroncore.layout import Layout, Mixture, Swizzle
from neuroncore.machine.core import NeuronCore

# No clock decides: the same examples every time, however slow the machine.
CASES = settings(deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))

FACTOR = st.tuples(st.integers(1, 4), st.integers(0, 60))


@given(st.lists(st.lists(FACTOR, max_size=2).map(tuple), min_size=1, max_size=3))
@settings(CASES)
def test_the_pattern_reads_the_elements_that_the_layout_names(dims):
    layout = Layout(tuple(dims), offset=7)
    elements = NeuronCore().adopt(np.arange(4096, dtype=np.int32), MemorySpace.hbm)

    verdict = layout.fits_view()

    view = elements.ap([list(pair) for pair in verdict.pattern], offset=verdict.offset)
    assert verdict and str(verdict).endswith(f"from {verdict.offset}")
    assert np.array_equal(view.array.reshape(layout.shape), layout.addresses())


def test_the_pairs_of_each_dimension_are_counted():
    verdict = Layout((((2, 32), (4, 8)), ((2, 100), (8, 1)))).fits_view()
    assert verdict.pattern == ((8, 8), (100, 2), (1, 8))
    assert verdict.dims == (1, 2)


def test_a_swizzle_is_blocked_by_the_bits_it_mixes():
    rows = Layout.of((8, 64), swizzle=Swizzle.xor(bits=3, base=3, shift=3))

    verdict = rows.fits_view()

    assert not verdict and verdict.pattern == ()
    assert verdict.mixtures == tuple(Mixture(3 + b, (0, b), (1, 3 + b)) for b in (2, 1, 0))
    assert str(verdict).startswith(
        "no access pattern: address bit 5 is the XOR of index bit 2 of dimension 0 and index bit 5 "
        "of dimension 1; address bit 4 is"
    )


def test_one_row_of_a_swizzled_tile_fits_where_its_chunks_do():
    rows = Layout.of((8, 64), swizzle=Swizzle.xor(bits=3, base=3, shift=3))

    verdict = rows.select(0, 7).fits_view()

    assert verdict.pattern == ((-8, 8), (1, 8)) and verdict.offset == 7 * 64 + 56


TILE = Layout.of((128, 4, 16), (2048, 32, 1), offset=512)


def test_a_tile_steps_over_partitions_first():
    assert TILE.fits_view(row=2048).pattern == ((2048, 128), (32, 4), (1, 16))
    assert Layout.of((1, 16), offset=4096).fits_view(row=2048).pattern == ((2048, 1), (1, 16))


@pytest.mark.parametrize(
    ("layout", "limits", "says"),
    [
        (TILE, {"row": 1024}, "dimension 0 steps over partitions by 1024; its steps are"),
        (TILE.slice(0, 0, 64, 2), {"row": 2048}, "its steps are [[4096, 64]]"),
        (Layout.of((128, 600), (2048, 4)), {"row": 2048}, "it reaches from 0 to 2396 in a"),
        (Layout.of((4, 8), (2048, -1)), {"row": 2048}, "it reaches from -7 to 0 in a partition"),
        (TILE, {"most_pairs": 2}, "it takes 3 [stride, count] pairs, of which 2 may be used"),
    ],
)
def test_what_an_engine_cannot_follow_has_a_reason(layout, limits, says):
    verdict = layout.fits_view(**limits)
    assert not verdict.fits and says in str(verdict)
