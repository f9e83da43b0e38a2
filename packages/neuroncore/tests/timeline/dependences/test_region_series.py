"""Regions of a finished loop: the last one that an access overlaps represents all of them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neuroncore.effects import Footprint, footprint
from neuroncore.timeline import estimate
from neuroncore.timeline.dependences.region_series import Series
from neuroncore.timeline.dependences.regions import Events, Region, share_bytes
from neuroncore.timeline.dependences.tracks import Track

from ..dependences.test_tracks import pieces
from ..kernels import program
from ..periodicity.test_steady_state import facts

TICKS, BARS = 10, 3


def begin(track: Track, part: Footprint) -> Region:
    """The first region of a series; the track does not contain it."""
    return Region(track.recent, track.form((part,)), (part,), 0)


@given(pieces(), pieces(), st.integers(-40, 40).filter(bool), st.integers(1, 30))
@settings(max_examples=400, deadline=None)
def test_the_last_of_a_series_that_shares_bytes_is_made_for_a_region(met, first, moved, count):
    track = Track("tile")
    first = first.moved(40 * count)  # so that nothing begins before 0
    region = track.region(0, (met.moved(40 * count),))
    written = Events(100, 1, 7, 0, -1, -1, 0, -1)

    track.add_series(Series(begin(track, first), written, moved, TICKS, BARS, count), 0)

    members = [(first.moved(moved * n),) for n in range(count)]
    shared = [n for n in range(count) if share_bytes(region.parts, members[n])]
    assert [o.parts for o in region.others] == [members[n] for n in shared[-1:]]
    assert [o.written for o in region.others] == [100 + TICKS * n for n in shared[-1:]]
    assert [o.writer for o in region.others] == [7 + BARS * n for n in shared[-1:]]


def test_a_series_that_nothing_waits_for_any_more_is_dropped():
    track = Track("tile")
    whole = track.region(0, (footprint(0, (), (), 4000),))
    written = Events(100, 1, 7, 0, -1, -1, 0, -1)
    piece = begin(track, footprint(0, (), (), 4))
    track.add_series(Series(piece, written, 4, TICKS, BARS, 200), 0)
    assert [o.written for o in whole.others] == [100 + TICKS * 199]

    track.add_series(Series(piece, written, 4, TICKS, BARS, 400), 100 + TICKS * 199)

    assert [o.written for o in whole.others] == [100 + TICKS * 399]


COLUMN_BY_COLUMN = """
for image in range(3):
    rows = buffer(float32[128, 402], sbuf)
    dma_copy(dst=rows[:, :], src=x[0:128, 0:402])
    sums = buffer(float32[128, 400], sbuf)
    for c in range(400):
        t = buffer(float32[128, 3], sbuf)
        tensor_tensor(dst=t[:, :], data1=rows[:, c : c + 3], data2=rows[:, c : c + 3], op=multiply)
        tensor_reduce(dst=sums[:, c : c + 1], data=t[:, :], op=add)
    dma_copy(dst=out[0:128, 0:200], src=sums[:, 0:200])
    dma_copy(dst=out[0:128, 600:900], src=sums[:, 100:400])
    memset(dst=sums[:, 130:150], value=0.0, engine=gpsimd)
"""


@pytest.mark.parametrize("mode", ["as_written", "device"])
@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_lanes_that_lag_behind_a_loop_of_columns_wait_for_those_they_touch(target, mode):
    kernel = program(COLUMN_BY_COLUMN, target)

    carried = estimate(kernel, mode=mode)
    played = estimate(kernel, mode=mode, skip_periods=False)

    assert carried.repeats or mode == "device"  # its horizon is longer than the loop
    assert facts(carried) == facts(played)
    assert carried.by_line() == pytest.approx(played.by_line())
