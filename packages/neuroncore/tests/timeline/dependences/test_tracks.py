"""Regions of a tensor: neighbours are found, dead ones forgotten."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from neuroncore.effects import footprint
from neuroncore.timeline.dependences.regions import share_bytes
from neuroncore.timeline.dependences.tracks import PRUNED, Track

ROW = 64


@st.composite
def pieces(draw):
    """Columns of rows of 64 bytes, some across the end of a row, or any strides."""
    if draw(st.booleans()):
        rows, columns = draw(st.integers(1, 8)), draw(st.integers(1, 16))
        at = draw(st.integers(0, 8 - rows)) * ROW + draw(st.integers(0, ROW - 1))
        return footprint(at, (rows, columns), (ROW, 1), 1)
    strides = draw(st.lists(st.integers(1, 90), max_size=3))
    shape = [draw(st.integers(1, 4)) for _ in strides]
    return footprint(
        draw(st.integers(0, 100)), tuple(shape), tuple(strides), draw(st.integers(1, 5))
    )


@given(st.lists(pieces(), min_size=2, max_size=24))
@settings(max_examples=300, deadline=None)
def test_regions_that_share_bytes_know_one_another(found):
    track = Track("tile")
    regions = list({id(r): r for r in (track.region(0, (piece,)) for piece in found)}.values())

    for region in regions:
        near = {id(other) for other in region.others}
        wanted = {id(o) for o in regions if o is not region and share_bytes(o.parts, region.parts)}
        assert near == wanted


def test_copies_of_a_rotating_buffer_do_not_wait_for_one_another():
    track = Track("tile", copies=2)
    piece = (footprint(0, (4,), (4,), 4),)

    assert track.region(0, piece) is not track.region(1, piece)
    assert track.region(1, piece).others == []


def test_what_was_let_go_long_ago_is_forgotten_and_the_rest_keeps_its_times():
    overfull: list[Track] = []
    track = Track("tile", overfull=overfull)
    for n in range(PRUNED + 1):
        track.region(0, (footprint(8 * n, (), (), 8),)).was_written(1, 10 * n, n)
    assert overfull == [track]

    track.forget(10 * PRUNED - 15)

    assert len(track.regions) == 2
    (last,) = (r for r in track.regions.values() if r.written == 10 * PRUNED)
    assert (last.writer, last.wlane) == (PRUNED, 1)
