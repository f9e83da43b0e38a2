"""Occupancy of SBUF and PSUM while a program is played.

A buffer comes to life where it is allocated, anew each time. It is held from the first micro-op
that touches it to the end of the last. Periods of loops that were carried forward are unfolded.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Set
from dataclasses import dataclass, replace

from neuroncore.enums import MemorySpace
from neuroncore.program import Buffer, Call, Program, accesses
from neuroncore.program.verification.liveness import moments
from neuroncore.targets import resolve_target
from neuroncore.timeline.model.bars import MULTIPLY, PASS, TRANSFER, WEIGHTS
from neuroncore.timeline.model.lanes import FIRST_QUEUE
from neuroncore.timeline.playing.sites import Site
from neuroncore.timeline.playing.state import State

Moment = tuple[int, int]
"""A time in ticks, and what is held from there on."""


@dataclass(slots=True)
class Life:
    """A buffer from one allocation to its last use: numbers of bars, times in ticks."""

    buffer: Buffer
    made: int
    """The bar that followed its allocation."""
    last: int
    start: int
    end: int
    touches: list[tuple[int, int]]
    """(number of a bar that touches it, its end), in order."""

    def until(self, first: int, behind: int) -> int | None:
        """The last end among the bars from `first` to before `behind` that touch it."""
        low, high = (bisect_left(self.touches, (n,)) for n in (first, behind))
        return max((end for _, end in self.touches[low:high]), default=None)


def occupancy(program: Program, found: list[Life]) -> dict[MemorySpace, list[Moment]]:
    """Bytes per partition of SBUF and banks of PSUM, each time that they change."""
    target = resolve_target(program.target)
    return {
        space: list(
            moments(
                space, target,
                [(v.buffer, v.start, v.end) for v in found if v.buffer.space is space],
            )
        ) or [(0, 0)]
        for space in (MemorySpace.sbuf, MemorySpace.psum)
    }  # fmt: skip


def lives(program: Program, state: State, sites: list[Site]) -> list[Life]:
    """Every life of a buffer on chip, the ones of periods that were carried forward too."""
    moved = {a.buffer for site in sites if site.lane >= FIRST_QUEUE for a in accesses(site.call)}
    return _unfolded(_lives(program, state, sites), state, moved)


def _lives(program: Program, state: State, sites: list[Site]) -> list[Life]:
    """The played lives, in order of their first bars."""
    buffers = program.buffers()
    on_chip = {name for name, buffer in buffers.items() if buffer.space.on_chip}
    touched = [_touched(site.call, on_chip) for site in sites]
    made: dict[str, list[int]] = {}
    for bar, name in state.made:
        made.setdefault(name, []).append(bar)
    lives: dict[tuple[str, int], Life] = {}
    for number, (site, _, kind, start, _, end, _, _) in enumerate(state.bars):
        for name in touched[site].get(kind, ()):
            count = bisect_right(made[name], number)
            life = lives.get((name, count))
            if life is None:
                first = made[name][count - 1]
                touches = [(number, end)]
                lives[name, count] = Life(buffers[name], first, number, start, end, touches)
                continue
            life.last = number
            life.touches.append((number, end))
            life.start, life.end = min(life.start, start), max(life.end, end)
    return list(lives.values())


def _touched(call: Call, on_chip: set[str]) -> dict[int, set[str]]:
    """By kind of micro-op, the buffers that it touches: loads before the pass write nothing."""
    every = {a.buffer for a in accesses(call)} & on_chip
    written = {call.accesses[n].buffer for n in call.record.outputs if n in call.accesses}
    return {WEIGHTS: every - written, MULTIPLY: every, PASS: every, TRANSFER: every}


def _unfolded(lives: list[Life], state: State, moved: Set[str]) -> list[Life]:
    """With the lives of periods that were not played; what outlives a period is held longer.

    `moved`: the buffers that transfers touch, which may end further distance than they start.
    """
    repeats = [(*r, s.drift) for r, s in zip(state.repeats, state.skips.all, strict=True)]
    for first, behind, times, ticks, drift in sorted(repeats, key=lambda r: r[1] - r[0]):
        again = [v for v in lives if first <= v.made and v.last < behind]
        for life in lives:
            last = life.until(first, behind) if life.made < first else None
            if last is not None:  # touched in the period, so in every one that was not played
                distance = ticks + drift if life.buffer.name in moved else ticks
                life.end = max(life.end, last + times * distance)
                insort(life.touches, (behind - 1, last + times * distance))
        lives = lives + [
            replace(v, start=v.start + n * ticks, end=v.end + n * distance)
            for v, distance in [(v, ticks + drift * (v.buffer.name in moved)) for v in again]
            for n in range(1, times + 1)
        ]
    return lives
