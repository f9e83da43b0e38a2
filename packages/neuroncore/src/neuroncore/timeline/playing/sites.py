"""Calls of a program, ready to be played: micro-ops, tracked accesses, ports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from neuroncore.effects import Touch
from neuroncore.program import Call
from neuroncore.timeline.dependences.access import TrackedAccess, Wait
from neuroncore.timeline.dependences.order import Gate
from neuroncore.timeline.resources.reservations import Gaps
from neuroncore.work import MicroOp

Step = Callable[[], None]


@dataclass(slots=True)
class Site:
    """One call of the program: its work, its accesses, its waits."""

    number: int
    call: Call
    lane: int
    work: list[MicroOp]
    trips: int
    """How often it is executed."""
    reads: list[TrackedAccess] = field(default_factory=list)
    writes: list[TrackedAccess] = field(default_factory=list)
    adds: list[TrackedAccess] = field(default_factory=list)
    """Written and read, but not waited for among instructions of one lane that add."""
    ports: list[Gaps] = field(default_factory=list)
    shortest: int = 0
    """The least ticks that one of its micro-ops occupies an engine."""
    alone: int = 0
    """How long a transfer takes beyond its share of the DMA engines, were it alone."""
    generator: Gaps | None = None
    """The unit that makes the descriptors of a DMA."""
    begins: str = "DMA_START"
    """The constant that says when a DMA begins to move data after its trigger."""
    elements: int = 1
    """Elements per partition of its widest operand."""
    hbm_bytes: int = 0
    flops: int = 0
    gate: Gate | None = None
    """What holds it back where the order is given."""

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
            case Touch.clobber:
                return []  # no instruction waits before it leaves a register undefined

    def wait(self, lag: int | None = None) -> Gate:
        """The dependences of the call as a whole."""
        return self.gate or self._wait(self.reads, self.writes, self.adds, lag)

    def matmul_waits(self) -> tuple[Gate, Gate]:
        """Dependences of a matmul's weights, the operand that it reads first, and its multiply."""
        if self.gate is not None:
            return self.gate, self.gate
        weights = self._wait(self.reads[:1], [], [])
        return weights, self._wait(self.reads[1:], self.writes, self.adds)

    def _wait(
        self,
        reads: list[TrackedAccess],
        writes: list[TrackedAccess],
        adds: list[TrackedAccess],
        lag: int | None = None,
    ) -> Wait:
        return Wait(self.lane, reads, writes, adds, lag)
