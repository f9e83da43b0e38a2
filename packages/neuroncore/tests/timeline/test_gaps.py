"""Busy time that is taken in any order: against a set of busy ticks."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from neuroncore.timeline.gaps import Gaps

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


@given(TAKES, st.integers(0, 20), st.integers(1, 20), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_a_period_that_is_repeated_is_taken_again(takes, first, length, times):
    gaps = Gaps()
    for kind, ready, size in takes:
        getattr(gaps, kind)(ready, size)
    before, last = ticks(gaps), first + length

    gaps.repeat(first, last, times)

    period = {t for t in before if first <= t < last}
    expected = {t for t in before if t < last}
    expected |= {t + n * length for t in period for n in range(1, times + 1)}
    expected |= {t + times * length for t in before if t >= last}
    assert ticks(gaps) == expected


@given(TAKES, st.integers(0, 20), st.integers(1, 10), st.integers(1, 30), st.integers(0, 300))
@settings(max_examples=300, deadline=None)
def test_time_that_nobody_takes_any_more_is_left_out(takes, first, length, times, before):
    whole, short = Gaps(), Gaps()
    for gaps in (whole, short):
        for kind, ready, taken in takes:
            getattr(gaps, kind)(ready, taken)
    before = min(before, first + length * (times + 1))

    whole.repeat(first, first + length, times)
    short.repeat(first, first + length, times, before)

    assert {t for t in ticks(short) if t >= before} == {t for t in ticks(whole) if t >= before}
    assert ticks(short) <= ticks(whole)
