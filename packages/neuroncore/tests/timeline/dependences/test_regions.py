"""Regions of a tensor that later instructions may wait for."""

from neuroncore.effects import footprint
from neuroncore.timeline.dependences.regions import Region
from neuroncore.timeline.dependences.tracks import Track


def touched(track: Track, offset: int, bar: int, release: int) -> Region:
    """Four bytes that bar `bar` wrote."""
    region = track.region(0, (footprint(offset, (4,), (1,), 1),))
    region.was_written(1, release, bar)
    region.toucher = bar
    if not region.is_recent:
        track.recent.add(region)
    return region


def test_an_earlier_instruction_may_wait_for_more_regions():
    track = Track("tile")
    early, late = touched(track, 0, 1, 10), touched(track, 8, 2, 20)

    assert track.recent.held(15) == [late]
    assert set(track.recent.held(5)) == {early, late}


def test_a_region_touched_again_is_held_once():
    track = Track("tile")
    touched(track, 0, 1, 10)
    assert track.recent.held(15) == []
    again = touched(track, 0, 3, 30)

    assert track.recent.held(15) == [again]
    assert track.recent.held(5) == [again]


def test_regions_of_a_bar_are_known_without_a_wait_for_it():
    track = Track("tile")
    before, since = touched(track, 0, 1, 10), touched(track, 8, 5, 11)

    assert track.recent.held(15) == []
    assert track.recent.touched_since(5) == [since]
    assert set(track.recent.touched_since(1)) == {before, since}
