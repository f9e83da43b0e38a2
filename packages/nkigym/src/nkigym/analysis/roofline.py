"""The least time that each resource needs for a program, in any order of its calls.

Each engine has to be occupied for the intervals of all its instructions, DMA engines for all bytes
and descriptors. The figures come from the instructions' records and are rounded as the timeline
rounds them. TensorE is counted warm, tables of ScalarE are counted not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from neuroncore.enums import Engine
from neuroncore.machine.core import NeuronCore
from neuroncore.program import Allocate, Buffer, Call, Loop, Program, Statement
from neuroncore.program.ir.binding import machine_call, specs_of
from neuroncore.timeline import constants, machine
from neuroncore.timeline.model.clock import Clock
from neuroncore.timeline.model.lanes import LANE
from neuroncore.work import LoadStationary, MicroOp, Transfer, charging

WEIGHTS = "weights"
"""Columns of stationary matrices into TensorE, which goes on beside the multiplies."""

_LANES = {engine.name: lane for engine, lane in LANE.items()} | {WEIGHTS: LANE[Engine.tensor]}
_TRANSFER_LATENCIES = ("DMA_START", "DMA_COMPLETION", "DMA_TO_CONSUMER")
"""The latencies of a transfer besides its bytes."""

Ticks = dict[str, int]


class Rooflines:
    """Rooflines of programs for one target; the costs of calls that programs share are cached."""

    def __init__(self, target: str, nki: str) -> None:
        self._core = NeuronCore(target, watchers=())
        self._nki = nki
        self._values = constants().at(self._core.target.name)
        facts: Mapping[str, Any] = machine(self._core.target.name)
        self._clock = Clock(facts, self._values)
        self._known: dict[tuple[int, ...], tuple[tuple[Any, ...], Ticks]] = {}

    def of(self, program: Program) -> dict[str, float]:
        """Resource (tensor, weights, vector, scalar, gpsimd, dma) → ns, of the resources in use."""
        total: Ticks = {}
        buffers = {buffer.name: buffer for buffer in program.parameters}
        with charging(self._values):
            for call, trips, at in _calls(program.body, 1, {}, buffers):
                for resource, ticks in self._ticks(call, buffers, at).items():
                    total[resource] = total.get(resource, 0) + ticks * trips
        return {resource: self._clock.ns(ticks) for resource, ticks in total.items()}

    def bound_ns(self, program: Program) -> float:
        """The time of the binding resource."""
        return max(self.of(program).values(), default=0.0)

    def work(self, program: Program, at: tuple[int, ...]) -> list[tuple[int, float]]:
        """Number and about how long (ns) of each statement in the loop at a place, taken alone: its
        longest resource, and once the way from an instruction to its result.
        """
        body, first = program.body, {}
        for number in at:
            loop = body[number]
            assert isinstance(loop, Loop)
            body, first = loop.body, {**first, loop.variable: loop.start}
        buffers = dict(program.buffers())
        with charging(self._values):
            return [
                (number, self._clock.ns(self._alone(statement, first, buffers)))
                for number, statement in enumerate(body)
                if not isinstance(statement, Allocate)
            ]

    def _alone(self, statement: Statement, first: dict[str, int], buffers: Any) -> int:
        total: Ticks = {}
        for call, trips, at in _calls((statement,), 1, first, buffers):
            for resource, ticks in self._ticks(call, buffers, at).items():
                total[resource] = total.get(resource, 0) + ticks * trips
        waits = (self._latency(resource) for resource in total)
        return max(total.values(), default=0) + max(waits, default=0)

    def _latency(self, resource: str) -> int:
        lane = _LANES.get(resource)
        if lane is None:
            return sum(map(self._clock.ticks, _TRANSFER_LATENCIES))
        return self._clock.latency(lane)

    def _ticks(self, call: Call, buffers: Mapping[str, Buffer], at: Mapping[str, int]) -> Ticks:
        """The time of one execution on each resource."""
        used = [buffers[access.buffer] for access in call.accesses.values()]
        key = (id(call), *map(id, used))
        known = self._known.get(key)
        if known is None:
            specs = specs_of(call, buffers, self._core, at)
            made = machine_call(call, specs, self._core, self._nki)
            ticks: Ticks = {}
            for op in made.record.work(made):
                resource, number = self._cost(op)
                ticks[resource] = ticks.get(resource, 0) + number
            known = self._known[key] = (call, *used), ticks  # stored, so that ids stay theirs
        return known[1]

    def _cost(self, op: MicroOp) -> tuple[str, int]:
        if not isinstance(op, Transfer):
            resource = WEIGHTS if isinstance(op, LoadStationary) else op.engine.name
            return resource, self._clock.cycles(LANE[op.engine], op.interval)
        _, load, length = self._clock.transfer(op)
        return op.engine.name, max(1, int(length * load / self._clock.dma_engines))


def _calls(
    body: tuple[Statement, ...], trips: int, at: dict[str, int], buffers: dict[str, Buffer]
) -> Iterator[tuple[Call, int, dict[str, int]]]:
    """Every call, how often it is executed, what its loop variables are first."""
    for statement in body:
        match statement:
            case Loop() if statement.trips:
                inside = {**at, statement.variable: statement.start}
                yield from _calls(statement.body, trips * statement.trips, inside, buffers)
            case Call():
                yield statement, trips, at
            case Allocate():
                buffers[statement.buffer.name] = statement.buffer
