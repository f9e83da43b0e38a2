"""The chain of waits that a program's time is made of, through loops that were carried forward."""

from __future__ import annotations

from dataclasses import dataclass, field

from neuroncore.timeline.state import Played, State
from neuroncore.timeline.tracks import NOBODY


@dataclass(slots=True)
class _Period:
    """A repeated period that the path, going back, runs through."""

    first: int
    behind: int
    length: int
    """Ticks."""
    left: int
    """Repetitions in front of the one that the path is in."""
    at: int
    """How many stretches of the path came before."""
    entries: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Bar by which the path came into a repetition → (repetitions left then, stretches so far)."""

    @property
    def later(self) -> int:
        """How much later than the played period this repetition is."""
        return self.left * self.length

    def twin(self, bars: list[Played], number: int) -> int:
        """The bar of this period that stands for `number` of the one before (NOBODY: none)."""
        same = number + self.behind - self.first
        if not self.left or same < self.first:
            return NOBODY
        one, other = bars[number], bars[same]
        is_twin = one.site == other.site and other.start - one.start == self.length
        return same if is_twin else NOBODY


def critical_path(state: State) -> list[tuple[int, float]]:
    """(bar, ticks that the path stays with it), in order of time; the ticks add up to the total.

    Going back from the last completion, the path runs through repetitions that were not played as
    it would through the period that was: a wait for the period before is a wait for the same bar,
    one repetition earlier. Where it comes into a repetition as into one before, it goes round; the
    stretches of a round then stand for all rounds. Where the period before was played otherwise
    (loops inside it), the stretches of one period stand for all, in proportion.
    """
    bars = state.bars
    if not bars:
        return []
    number, until = _last(state)
    path: list[list[float]] = []
    inside: list[_Period] = []
    came_from = len(bars)
    while number != NOBODY:
        while inside and number < inside[-1].first:
            same = inside[-1].twin(bars, number)
            if same == NOBODY:
                until -= _leave(path, inside.pop())
                continue
            came_from, number = came_from + same - number, same
            inside[-1].left -= 1
            until -= _go_round(path, inside[-1], number)
        for first, behind, times, ticks in sorted(state.repeats, key=lambda r: r[0] - r[1]):
            is_new = all((p.first, p.behind) != (first, behind) for p in inside)
            if is_new and first <= number < behind <= came_from:
                inside.append(_Period(first, behind, ticks, times, len(path)))
        start = bars[number].start + sum(period.later for period in inside)
        path.append([number, max(0.0, until - start)])
        until, came_from, number = start, number, bars[number].cause
    while inside:
        until -= _leave(path, inside.pop())
    path[-1][1] += max(0.0, until)
    return [(int(bar), ticks) for bar, ticks in reversed(path)]


def _last(state: State) -> tuple[int, float]:
    """The bar that ends last, with its end: one in a period that was repeated ends later too."""
    ends = [float(bar.end) for bar in state.bars]
    for first, behind, times, ticks in sorted(state.repeats, key=lambda r: r[1] - r[0]):
        for number in range(first, behind):
            ends[number] += times * ticks
    number = max(range(len(ends)), key=ends.__getitem__)
    return number, ends[number]


def _go_round(path: list[list[float]], period: _Period, entry: int) -> float:
    """Skip the rounds that are like the one behind; how much time they take."""
    left, at = period.entries.setdefault(entry, (period.left, len(path)))
    each = left - period.left
    rounds = period.left // each if each else 0
    for stretch in path[at:] if rounds else ():
        stretch[1] *= 1 + rounds
    period.left -= rounds * each
    return rounds * each * period.length


def _leave(path: list[list[float]], period: _Period) -> float:
    """Share the time of the repetitions that are left among one period's stretches; the time."""
    shares, room = [], period.length
    stretches = path[: period.at - 1 : -1] if period.at else path[::-1]
    for _, ticks in stretches:
        shares.append(min(ticks, room))
        room -= shares[-1]
    total = sum(shares)
    for stretch, share in zip(stretches, shares, strict=True):
        stretch[1] += period.later * (share / total if total else 1 / len(shares))
    return period.later
