"""`capacity`: what is held of SBUF and PSUM at the fullest moment.

A tensor is held from where it is allocated to its last use. SBUF counts bytes per partition against
what the generation leaves to kernels, PSUM whole banks. Tensors with an explicit address count
where they lie, once.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush

from neuroncore._caret import Place
from neuroncore.checks._lives import Life, LivesWatcher
from neuroncore.checks.findings import from_violation
from neuroncore.core import NeuronCore
from neuroncore.engines import Space
from neuroncore.memory.occupancy import covered, over_capacity, units_between, units_held
from neuroncore.targets import Target


class Capacity(LivesWatcher):
    """Adds up what is alive and reports a memory that is too small."""

    def judge(self, lives: list[Life], core: NeuronCore) -> None:
        for space in (Space.sbuf, Space.psum):
            mine = [life for life in lives if life.space is space]
            if mine:
                self._judge(space, mine, core)

    def _judge(self, space: Space, lives: list[Life], core: NeuronCore) -> None:
        held, at, alive = _peak(space, lives, core.target)
        holders = _holders(space, alive, core.target)
        usable = core.free_bytes_of(Space.sbuf)
        violation = over_capacity(space, core.target, held, usable, holders)
        if violation is not None:
            self.report.add(from_violation("capacity", violation, at.place))


def _peak(space: Space, lives: list[Life], target: Target) -> tuple[int, Life, list[Life]]:
    """The most that is held at once, the allocation that reaches it, and who is alive then.

    `lives` are in the order in which they were made.
    """
    account = _Account(space, target)
    ends: list[tuple[int, int]] = []
    most, fullest = -1, 0
    for number, life in enumerate(lives):
        while ends and ends[0][0] <= life.made:
            account.add(lives[heappop(ends)[1]], -1)
        account.add(life, 1)
        heappush(ends, (life.last, number))
        if account.held > most:
            most, fullest = account.held, number
    at = lives[fullest]
    return most, at, [life for life in lives[: fullest + 1] if life.last > at.made]


class _Account:
    """What is held now."""

    def __init__(self, space: Space, target: Target) -> None:
        self.space, self.target = space, target
        self._floating = 0
        self._spans: Counter[tuple[int, int]] = Counter()
        self._placed = 0

    @property
    def held(self) -> int:
        return self._floating + self._placed

    def add(self, life: Life, sign: int) -> None:
        """A tensor comes (1) or goes (-1)."""
        if life.address is None:
            self._floating += sign * units_held(self.space, self.target, life.free_bytes)
            return
        span = units_between(self.space, self.target, life.address[1], life.free_bytes)
        self._spans[span] += sign
        self._placed = covered(span for span, count in self._spans.items() if count)


def _holders(space: Space, alive: list[Life], target: Target) -> list[str]:
    """Who holds how much, the largest first; tensors of one line together."""
    found: dict[tuple[str, Place | None], list[int]] = {}
    for life in alive:
        size = units_held(space, target, life.free_bytes)
        found.setdefault((str(life), life.place), []).append(size)
    ordered = sorted(found.items(), key=lambda item: -sum(item[1]))
    return [
        f"{name}: {sizes[0]}"
        + (f" x {len(sizes)}" if len(sizes) > 1 else "")
        + (f" ({place})" if place else "")
        for (name, place), sizes in ordered
    ]
