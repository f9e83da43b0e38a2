"""The critical path of a timeline: the chain of bars that determines when it ends."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from neuroncore.timeline.model.bars import NO_BAR, TRANSFER
from neuroncore.timeline.playing.skipped_periods import Twin
from neuroncore.timeline.playing.state import State

Stretch = list[int]
"""The place of a bar in `state.bars`, the ticks that the path stays with it and with the bars it
represents, and how many these are, itself included.
"""

PathKey = tuple[int, int, float]
"""The site of a bar, its kind, and the ticks that the critical path stays with it."""


def stays(state: State, path: Sequence[Stretch]) -> dict[PathKey, int]:
    """How often the path stays with bars of one site and kind for so long."""
    found = dict[PathKey, int]()
    for place, ticks, times in path:
        bar = state.bars[place]
        key = bar[0], bar[2], ticks / times
        found[key] = found.get(key, 0) + times
    return found


def critical_path(state: State) -> list[Stretch]:
    """The path in order of time.

    Going back from the last completion, bars that were not played are copies of the played period,
    later by whole periods, and wait for bars as many numbers before them. Where the path is for the
    second time at a bar of a period, it has gone round; further rounds are alike, and one
    represents all of them. The ticks add up to the total.
    """
    bars, twin_of = state.bars, state.skips.twin
    if not bars:
        return []
    number, until = _last(state)
    path: list[Stretch] = []
    rounds = _Rounds()
    while number != NO_BAR:
        twin = twin_of(number)
        _, _, _, start, _, _, cause, _ = bars[twin.place]
        start += twin.later
        path.append([twin.place, until - start if until > start else 0, 1])
        skipped, ticks = rounds.go(path, number, twin) if twin.rounds else (0, 0)
        number, until = number - skipped, start - ticks
        number = NO_BAR if cause == NO_BAR else cause + number - twin.number
    path[-1][1] += max(0, until)
    return path[::-1]


class _Rounds:
    """Where the path has been in the periods that it runs through."""

    def __init__(self) -> None:
        self.seen: dict[tuple[int, int], dict[int, tuple[int, int]]] = {}
        """First bar behind a played period → place in it → (bar, stretches with its own)."""

    def go(self, path: list[Stretch], number: int, twin: Twin) -> tuple[int, int]:
        """Skip the rounds that are like the one to bar `number`: how many bars and ticks."""
        for skip, start in reversed(twin.rounds):
            seen = self.seen.setdefault((start, skip.size), {})
            place = (number - start) % skip.size
            before, at = seen.get(place, (number, len(path)))
            seen[place] = number, len(path)
            each = before - number
            if each and (count := (number - start) // each):
                path += [[n, ticks * count, times * count] for n, ticks, times in path[at:]]
                seen.clear()
                return count * each, count * each // skip.size * skip.ticks
        return 0, 0


def _last(state: State) -> tuple[int, int]:
    """The bar that ends last, the first of several, and when; the last repetition counts."""
    bars = state.bars
    later, drifts, numbers = [0] * (len(bars) + 1), [0] * (len(bars) + 1), [1] * (len(bars) + 1)
    numbers[0] = 0
    for (first, behind, times, ticks), skip in zip(state.repeats, state.skips.all, strict=True):
        numbers[first] += times * skip.size
        for found, by in (later, ticks), (drifts, skip.drift):
            found[first] += times * by
            found[behind] -= times * by
    later, drifts, numbers = map(accumulate, (later, drifts, numbers))
    ends = [
        (bar[5] + more + drift * (bar[2] == TRANSFER), -number)
        for bar, more, drift, number in zip(bars, later, drifts, numbers, strict=False)
    ]
    end, number = max(ends)
    return -number, end


def is_out_of_order(state: State) -> bool:
    """Whether an engine or a queue started something before what comes earlier in the program."""
    last: dict[int, int] = {}
    for bar in state.bars:
        lane, start = bar[1], bar[3]
        if start < last.get(lane, start):
            return True
        last[lane] = start
    return False
