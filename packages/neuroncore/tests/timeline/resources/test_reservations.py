"""Busy time that is taken in any order: against a set of busy ticks."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from neuroncore.timeline.resources.reservations import Gaps

TAKES = st.lists(
    st.tuples(st.sampled_from(["reserve", "fill"]), st.integers(0, 40), st.integers(0, 6)),
    max_size=14,
)


def first_room(busy: set[int], ready: int, length: int) -> int:
    while any(tick in busy for tick in range(ready, ready + length)):
        ready += 1
    return ready


def take(busy: set[int], kind: str, ready: int, length: int) -> int:
    """The same as `Gaps.reserve` and `Gaps.fill`, tick by tick."""
    if kind == "reserve":
        start = first_room(busy, ready, length)
        busy.update(range(start, start + length))
        return start
    end = ready
    while length:
        if ready not in busy:
            busy.add(ready)
            length -= 1
            end = ready + 1
        ready += 1
    return end


def ticks(gaps: Gaps) -> set[int]:
    return {t for s, e in zip(gaps.starts, gaps.ends, strict=True) for t in range(s, e)}


@given(TAKES)
@settings(max_examples=400, deadline=None)
def test_time_is_taken_in_the_first_gap(takes):
    gaps, busy = Gaps(), set()

    for kind, ready, length in takes:
        assert getattr(gaps, kind)(ready, length) == take(busy, kind, ready, length)

    assert ticks(gaps) == busy
    assert gaps.busy == len(busy)
    assert all(end < start for end, start in zip(gaps.ends, gaps.starts[1:], strict=False))


@st.composite
def periods(draw):
    """Busy time, what of it was taken in a period, how long that is, and how often it comes."""
    old, new = draw(TAKES), draw(TAKES)
    first, times = draw(st.integers(0, 20)), draw(st.integers(1, 12))
    gaps = Gaps()
    for kind, ready, length in old:
        getattr(gaps, kind)(ready, length)
    before, seen = gaps.pieces(first), ticks(gaps)
    for kind, ready, length in new:
        getattr(gaps, kind)(first + ready, length)
    taken = ticks(gaps) - seen
    again = range(1, times + 1)
    length = next(
        n
        for n in range(1, 200)
        if are_disjoint(ticks(gaps), *({t + n * k for t in taken} for k in again))
    )
    return gaps, (first, before, length, times), taken


def are_disjoint(*sets: set[int]) -> bool:
    return len(set().union(*sets)) == sum(map(len, sets))


@given(periods())
@settings(max_examples=300, deadline=None)
def test_a_period_that_is_repeated_is_taken_again(case):
    gaps, (first, before, length, times), taken = case
    expected = ticks(gaps) | {t + n * length for t in taken for n in range(1, times + 1)}

    gaps.repeat(first, before, length, times, 0)

    assert ticks(gaps) == expected
    assert all(end < start for end, start in zip(gaps.ends, gaps.starts[1:], strict=False))


@given(periods(), st.integers(0, 300))
@settings(max_examples=300, deadline=None)
def test_time_without_a_later_reservation_is_left_out(case, earliest):
    gaps, (first, before, length, times), taken = case
    expected = ticks(gaps) | {t + n * length for t in taken for n in range(1, times + 1)}

    gaps.repeat(first, before, length, times, earliest)

    assert {t for t in ticks(gaps) if t >= earliest} == {t for t in expected if t >= earliest}
    assert ticks(gaps) <= expected


@given(TAKES, st.integers(0, 40), st.integers(1, 8))
@settings(max_examples=300, deadline=None)
def test_room_that_is_too_short_is_as_good_as_taken(takes, first, least):
    gaps = Gaps()
    for kind, ready, length in takes:
        getattr(gaps, kind)(ready, length)
    seen = Gaps()
    for start, end in gaps.stretches(first, least):
        seen.follow(start, end - start)

    for ready in range(first, first + 60):
        for length in (least, least + 3):
            assert seen.first_gap(ready, length) == gaps.first_gap(ready, length)
