"""Time in ticks: every engine's cycle is a whole number of them, so that states compare exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neuroncore.enums import Engine
from neuroncore.timeline.model.lanes import ENGINES
from neuroncore.work import Transfer

_LATENCY = {
    Engine.tensor: "TENSOR_LATENCY",
    Engine.vector: "VECTOR_LATENCY",
    Engine.scalar: "SCALAR_LATENCY",
    Engine.gpsimd: "GPSIMD_LATENCY",
    Engine.sync: "GPSIMD_LATENCY",  # a guess: no document shows one; a profile would
}
PARTITIONS_PER_DMA_ENGINE = 8  # [NKI DMA overview]


def ticks_per_ns(machine: Mapping[str, Any]) -> float:
    """Ticks of a generation's timeline in a nanosecond: two per cycle of TensorE."""
    return 2 * machine["clock_ghz"]["tensor"]


def latency_name(lane: int) -> str:
    """The constant of an engine's latency."""
    return _LATENCY[ENGINES[lane]]


class Clock:
    """Cycles and nanoseconds of one generation as ticks of twice TensorE's clock."""

    def __init__(self, machine: Mapping[str, Any], values: Mapping[str, float]) -> None:
        self.values = values
        ghz = machine["clock_ghz"]
        self.ticks_per_ns = ticks_per_ns(machine)
        self.per_cycle = [round(self.ticks_per_ns / ghz[engine.name]) for engine in ENGINES]
        self.dma_engines = int(machine["dma_engines"])
        self._partition_rows = PARTITIONS_PER_DMA_ENGINE

    def of_ns(self, nanoseconds: float) -> int:
        """A time as ticks, to the nearest."""
        return round(nanoseconds * self.ticks_per_ns)

    def ns(self, ticks: float) -> float:
        return ticks / self.ticks_per_ns

    def ticks(self, name: str) -> int:
        """A constant in nanoseconds as ticks."""
        return self.of_ns(self.values[name])

    def cycles(self, lane: int, count: float) -> int:
        """Cycles of an engine as ticks."""
        return round(count * self.per_cycle[lane])

    def latency(self, lane: int) -> int:
        """From the end of an instruction's interval to its result, in ticks."""
        return self.cycles(lane, self.values[latency_name(lane)])

    def transfer(self, op: Transfer) -> tuple[int, int]:
        """How many DMA engines share a transfer, and how long each is busy with it, in ticks.

        Eight partitions go to one engine. A descriptor takes its bytes at the practical bandwidth
        and a little more, and never less than the shortest transfer that was seen.
        """
        engines = min(self.dma_engines, -(-op.partitions // self._partition_rows))
        engines = min(engines, op.descriptors) or 1
        data = op.run_bytes / self.values["DMA_BANDWIDTH"] + self.values["DMA_DESCRIPTOR"]
        each = max(data, self.values["DMA_DESCRIPTOR_MIN"])
        return engines, max(1, self.of_ns(op.descriptors / engines * each))
