"""Time in ticks: every engine's cycle is a whole number of them, so that states compare exactly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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


def ticks_per_ns(machine: Mapping[str, Any]) -> float:
    """Ticks of a generation's timeline in a nanosecond: two per cycle of TensorE."""
    return 2 * machine["clock_ghz"]["tensor"]


def latency_name(lane: int) -> str:
    """The constant of an engine's latency."""
    return _LATENCY[ENGINES[lane]]


class Shares(NamedTuple):
    """How a transfer is dealt to DMA engines."""

    engines: int
    load: float
    """The work of all engines over that of the busiest one."""
    ticks: int
    """How long the busiest engine is busy."""


class Clock:
    """Cycles and nanoseconds of one generation as ticks of twice TensorE's clock."""

    def __init__(self, machine: Mapping[str, Any], values: Mapping[str, float]) -> None:
        self.values = values
        ghz = machine["clock_ghz"]
        self.ticks_per_ns = ticks_per_ns(machine)
        self.per_cycle = [round(self.ticks_per_ns / ghz[engine.name]) for engine in ENGINES]
        self.dma_engines = int(machine["dma_engines"])
        self._partitions_per_engine = int(machine["dma_engine_partitions"])

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

    def transfer(self, op: Transfer) -> Shares:
        """The DMA engines of a transfer. It ends when the busiest one does.

        Partitions go to engines in groups: eight to one engine [NKI DMA overview], on trn1 one by
        one [triton-viz, measured on Inf2: min(P, 16) engines]. Within HBM no partition is of an
        engine: the bytes are cut for as many engines as end first.
        """
        engines, load, busy_ns = self._on_chip(op) if op.partitions else self._within_hbm(op)
        return Shares(engines, load, max(1, self.of_ns(busy_ns)))

    def _on_chip(self, op: Transfer) -> tuple[int, float, float]:
        group = self._partitions_per_engine
        groups = -(-op.partitions // group)
        engines = min(self.dma_engines, groups)
        busiest = min(op.partitions, group * -(-groups // engines))
        pieces = max(op.descriptors, op.partitions)
        each = self._descriptor(op.run_bytes * op.descriptors / pieces)
        return engines, op.partitions / busiest, busiest * (pieces / op.partitions) * each

    def _within_hbm(self, op: Transfer) -> tuple[int, float, float]:
        """Every further engine starts later, so that few bytes have few engines."""
        moved, stagger = op.run_bytes * op.descriptors, self.values["DMA_STAGGER"]

        def busy_ns(engines: int) -> float:
            pieces = max(op.descriptors, engines)
            return pieces / engines * self._descriptor(moved / pieces)

        engines = min(range(1, self.dma_engines + 1), key=lambda n: busy_ns(n) + stagger * (n - 1))
        return engines, float(engines), busy_ns(engines)

    def _descriptor(self, run_bytes: float) -> float:
        """Its bytes at the practical bandwidth and a little more, and never less than the shortest
        transfer that was seen, in ns.
        """
        data = run_bytes / self.values["DMA_BANDWIDTH"] + self.values["DMA_DESCRIPTOR"]
        return max(data, self.values["DMA_DESCRIPTOR_MIN"])
