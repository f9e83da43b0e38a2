"""The lanes of a NeuronCore: engines with their in-order streams, DMA queues behind them."""

from __future__ import annotations

from neuroncore.enums import Engine

ENGINES = (Engine.tensor, Engine.vector, Engine.scalar, Engine.gpsimd, Engine.sync)
LANE = {engine: number for number, engine in enumerate(ENGINES)}
TENSOR, VECTOR, SCALAR = (LANE[engine] for engine in ENGINES[:3])
FIRST_QUEUE = len(ENGINES)
"""Lanes from here on are DMA queues."""
DMA = "dma"
_NAMES = tuple(engine.name for engine in ENGINES)


def lane_name(lane: int) -> str:
    """tensor, vector, …; every queue is dma."""
    return _NAMES[lane] if lane < FIRST_QUEUE else DMA


class Warmth:
    """TensorE's current limit: half rate for a while after it was used too little.

    Time is cut into windows of the warm-up's length, each beginning with a multiply; one that
    follows a window used less than half is cold. The first is. [neuron-explorer guide, throttling]
    """

    __slots__ = ("busy", "cold", "since", "window")

    def __init__(self, window: int) -> None:
        self.window = window
        self.since = -window
        self.busy = 0
        self.cold = False

    def interval(self, start: int, interval: int) -> int:
        """How long a multiply that begins at `start` occupies the engine."""
        if not self.window:
            return interval
        elapsed = start - self.since
        if elapsed >= self.window:
            self.cold = 2 * self.busy < elapsed or not self.busy
            self.since, self.busy = start, 0
        if self.cold:
            interval *= 2
        self.busy += interval
        return interval

    def state(self, base: int) -> tuple[int, int, bool] | None:
        """The state that later steps depend on, relative to `base`."""
        return (base - self.since, self.busy, self.cold) if self.window else None
