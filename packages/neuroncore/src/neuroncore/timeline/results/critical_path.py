"""The chain of waits that a program's time is made of, through loops that were carried forward."""

from __future__ import annotations

from neuroncore.timeline.model.bars import NO_BAR, TRANSFER, Played
from neuroncore.timeline.playing.skipped_periods import Twin
from neuroncore.timeline.playing.state import State

Stretch = list[int]
"""The index of a played bar, and the ticks that the path stays with it."""


def critical_path(state: State) -> list[tuple[int, int]]:
    """(place of a bar in `state.bars`, ticks that the path stays with it), in order of time.

    Going back from the last completion, bars that were not played are copies of the played period,
    later by whole periods, and wait for bars as many numbers before them. Where the path is for the
    second time at a bar of a period, it has gone round; further rounds are alike, and one
    represents all of them. The ticks add up to the total.
    """
    if not state.bars:
        return []
    number, until = _last(state)
    path: list[Stretch] = []
    rounds = _Rounds()
    while number != NO_BAR:
        twin = state.skips.twin(number)
        played = Played(*state.bars[twin.place])
        start = played.start + twin.later
        path.append([twin.place, max(0, until - start)])
        bars, ticks = rounds.go(path, number, twin)
        number, until = number - bars, start - ticks
        number = NO_BAR if played.cause == NO_BAR else played.cause + number - twin.number
    path[-1][1] += max(0, until)
    return [(place, ticks) for place, ticks in reversed(path)]


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
                path += [[place, ticks * count] for place, ticks in path[at:]]
                seen.clear()
                return count * each, count * each // skip.size * skip.ticks
        return 0, 0


def _last(state: State) -> tuple[int, int]:
    """The bar that ends last, the first of several, and when; the last repetition counts."""
    bars = state.played()
    ends = [bar.end for bar in bars]
    numbers = list(range(len(ends)))
    for (first, behind, times, ticks), skip in zip(state.repeats, state.skips.all, strict=True):
        by = times * skip.size
        numbers[first:] = [number + by for number in numbers[first:]]
        for place in range(first, behind):
            drift = skip.drift if bars[place].kind == TRANSFER else 0
            ends[place] += times * (ticks + drift)
    end = max(ends)
    return min(n for n, e in zip(numbers, ends, strict=True) if e == end), end
