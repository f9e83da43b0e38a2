"""Which DMAs of a program must have ended when an instruction begins (Options.dma_order "tiles").

An instruction waits for what wrote the on-chip tensors that it reads, for what read or wrote those
that it writes, and for the instruction before it on its engine; all that these waited for has ended
too. Whole tensors count, not their parts, so that more is taken for ordered than need be.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from neuroncore.effects import Touch, Touched, conflict, touched
from neuroncore.engines import Engine
from neuroncore.memory import Storage
from neuroncore.observe import Event

Ended = int
"""A set of DMAs, one bit for each."""


@dataclass(slots=True)
class Streams:
    """What has ended, by on-chip tensor and by engine; the DMAs that touched HBM so far."""

    _written: dict[Storage, Ended] = field(default_factory=lambda: defaultdict(int))
    _read: dict[Storage, Ended] = field(default_factory=lambda: defaultdict(int))
    _engines: dict[Engine, Ended] = field(default_factory=lambda: defaultdict(int))
    _dmas: dict[Storage, list[tuple[int, Touched, str]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _count: int = 0

    def unordered(self, event: Event) -> Iterator[tuple[str, Storage]]:
        """The earlier DMAs that this one conflicts with and does not wait for."""
        places = [t for t in touched(event) if isinstance(t.where, Storage)]
        chip = [t for t in places if _storage(t).space.on_chip]
        ended = self._before(event, chip)
        if event.call.engine is Engine.dma:
            for mine in (t for t in places if not _storage(t).space.on_chip):
                known = self._dmas[_storage(mine)]
                for number, other, text in known:
                    if not ended >> number & 1 and conflict(mine, other):
                        yield text, _storage(mine)
                        break
                known.append((self._count, mine, f"{event.call.record.name} at {event.place}"))
            ended |= 1 << self._count
            self._count += 1
        self._after(event, chip, ended)

    def _before(self, event: Event, chip: list[Touched]) -> Ended:
        ended = 0
        for place in chip:
            where = _storage(place)
            ended |= self._written[where]
            if place.touch is not Touch.read:
                ended |= self._read[where]
        return ended | (0 if event.call.engine is Engine.dma else self._engines[event.call.engine])

    def _after(self, event: Event, chip: list[Touched], ended: Ended) -> None:
        for place in chip:
            memory = self._read if place.touch is Touch.read else self._written
            memory[_storage(place)] |= ended
        if event.call.engine is not Engine.dma:
            self._engines[event.call.engine] |= ended


def _storage(place: Touched) -> Storage:
    assert isinstance(place.where, Storage)
    return place.where
