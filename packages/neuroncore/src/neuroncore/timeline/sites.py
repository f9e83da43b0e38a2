"""Calls of a program, ready to be played: micro-ops, tracked accesses, ports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from neuroncore.effects import Touch
from neuroncore.program import Call
from neuroncore.timeline.access import TrackedAccess
from neuroncore.timeline.gaps import Gaps
from neuroncore.timeline.waits import Wait
from neuroncore.work import MicroOp

Step = Callable[[], None]


@dataclass(slots=True)
class Site:
    """One call of the program: what it asks for, who waits for what."""

    number: int
    call: Call
    lane: int
    work: list[MicroOp]
    reads: list[TrackedAccess] = field(default_factory=list)
    writes: list[TrackedAccess] = field(default_factory=list)
    adds: list[TrackedAccess] = field(default_factory=list)
    """Written and read, but not waited for among instructions of one lane that add."""
    ports: list[Gaps] = field(default_factory=list)
    hbm_bytes: int = 0
    flops: int = 0

    @property
    def accesses(self) -> list[TrackedAccess]:
        return [*self.reads, *self.writes, *self.adds]

    def touching(self, touch: Touch) -> list[TrackedAccess]:
        """Where an access that touches memory like this belongs."""
        match touch:
            case Touch.read:
                return self.reads
            case Touch.write:
                return self.writes
            case Touch.accumulate:
                return self.adds

    def wait(self, lag: int | None = None) -> Wait:
        """What holds it back as a whole."""
        return Wait(self.lane, self.reads, self.writes, self.adds, lag)
