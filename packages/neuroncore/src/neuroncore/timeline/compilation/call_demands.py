"""Demands of a program's calls on the machine, computed once for all ways of playing it.

Programs that a search visits share most of their calls and buffers: the demands of a call are kept
and found again by the very call, its buffers and where its loops begin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from neuroncore.effects import Touch
from neuroncore.enums import Engine
from neuroncore.instructions import Call as MachineCall
from neuroncore.instructions import check_recorded
from neuroncore.machine.core import NeuronCore
from neuroncore.program import Buffer, Call, Loop, Program, Statement
from neuroncore.program.ir.binding import machine_call, specs_of
from neuroncore.program.ir.effects import BoundEffect, bound_effects
from neuroncore.program.ir.traversal import accesses
from neuroncore.timeline.compilation.copies import is_float32_between
from neuroncore.timeline.model.clock import Clock
from neuroncore.timeline.model.lanes import LANE
from neuroncore.timeline.resources.ports import ports_of
from neuroncore.work import MicroOp, Pass

KEPT, MOST_MACHINES = 1 << 13, 1 << 8
"""Calls that are kept, and machines; beyond it they are looked at anew."""

_known: dict[tuple[int, ...], tuple[Any, Demand]] = {}
"""With what the key names, so that no id comes again."""
_machines: dict[tuple[Any, ...], int] = {}
"""Target, NKI version and constants → their number, which no others ever have."""
_number = count(1)


@dataclass(frozen=True, slots=True)
class Demand:
    """One call: as the machine's records take it, what it touches, its micro-ops."""

    made: MachineCall
    places: tuple[BoundEffect, ...]
    work: list[MicroOp]
    passes: list[Pass]
    """Its passes on VectorE, ScalarE or GpSimdE, if it is one trip through one of them."""
    ports: tuple[str, ...]
    """Paths to memory that it takes, if another engine uses them too."""
    changes: tuple[str, ...]
    """The buffers of which it writes some."""

    @property
    def elements(self) -> int:
        """Elements per partition of its widest operand."""
        return max((spec.free for spec in self.made.tiles.values()), default=1)

    @property
    def engines(self) -> set[Engine]:
        """The engines that may execute it."""
        return {op.engine for op in self.passes}

    def elsewhere(self, call: Call) -> Iterator[Demand]:
        """The call on the other of VectorE and ScalarE, where the kernel left that open."""
        made = self.made
        if made.attrs.get("engine") is not Engine.unknown:
            return
        for engine in (Engine.vector, Engine.scalar):
            if engine not in made.record.engines or engine is made.engine:
                continue
            attrs = {**made.attrs, "engine": engine}
            other = MachineCall(
                made.record, made.specs, attrs, made.target, made.options, made.version
            )
            demand = _demand(call, other, self.places)
            if demand.passes and (_is_an_activation(made) or not check_recorded(other)):
                yield demand


def _is_an_activation(made: MachineCall) -> bool:
    """Whether ScalarE computes it as activation(scale * x + bias), on every generation."""
    if made.record.name == "tensor_copy":
        return is_float32_between(made.tiles["dst"].dtype, made.tiles["src"].dtype)
    if made.record.name != "tensor_scalar":
        return False
    names = [op.name for op in (made.op0, made.op1) if op is not None]
    return names in (["multiply"], ["add"], ["multiply", "add"])


class Described:
    """The calls of one program; a program of the same calls in another order shares it."""

    def __init__(self, program: Program, core: NeuronCore, values: Mapping[str, float]) -> None:
        self.core, self.nki, self.buffers = core, program.nki, program.buffers()
        if len(_known) >= KEPT or len(_machines) >= MOST_MACHINES:
            _known.clear()
            _machines.clear()
        machine = (program.target, program.nki, *values.items())
        self._machine = _machines.get(machine) or _machines.setdefault(machine, next(_number))
        self.demands: dict[int, Demand] = {}
        """Of each call, by id."""
        self._add(program.body, {})

    def _add(self, body: tuple[Statement, ...], first: dict[str, int]) -> None:
        """The calls of these statements, whose loop variables are first what `first` says."""
        for statement in body:
            if isinstance(statement, Call):
                self.demands[id(statement)] = self._demand(statement, first)
            elif isinstance(statement, Loop):
                self._add(statement.body, {**first, statement.variable: statement.start})

    def _demand(self, call: Call, first: dict[str, int]) -> Demand:
        buffers = self.buffers
        used: list[Call | Buffer] = [call]
        starts: list[int] = []
        for access in accesses(call):
            used.append(buffers[access.buffer])
            starts += [first[name] for name, _ in access.offset.terms]
        key = (self._machine, *map(id, used), *starts)
        known = _known.get(key)
        if known is None:
            specs = specs_of(call, buffers, self.core, first)
            made = machine_call(call, specs, self.core, self.nki)
            known = used, _demand(call, made, bound_effects(call, made, buffers))
            if all(isinstance(each, Call) or each.content is None for each in used):
                _known[key] = known  # constants are not kept alive
        return known[1]


def _demand(call: Call, made: MachineCall, places: tuple[BoundEffect, ...]) -> Demand:
    work = made.record.work(made)
    passes = [op for op in work if isinstance(op, Pass)] if len(work) == 1 else []
    ports = dict.fromkeys([name for op in passes for name in ports_of(call, made, op)])
    written = [p.buffer for p in places if p.buffer and p.effect.touch is not Touch.read]
    return Demand(made, places, work, passes, tuple(ports), tuple(dict.fromkeys(written)))


def balanced(
    body: tuple[Statement, ...],
    clock: Clock,
    ways: Mapping[int, Sequence[Pass]],
) -> dict[int, int]:
    """Call (by id) → which of its `ways` to take; the first is what the call does as written.

    The longest (times its iterations) first, each to the engine that would then be done first.
    """
    weights = dict(_iterations(body, 1))
    load: dict[int, float] = {}
    open_calls = []
    for call, trips in weights.items():
        each = [
            (LANE[op.engine], clock.cycles(LANE[op.engine], op.interval))
            for op in ways.get(call, ())
        ]
        if len(each) == 1:
            lane, ticks = each[0]
            load[lane] = load.get(lane, 0) + ticks * trips
        elif each:
            open_calls.append((trips, call, each))
    chosen: dict[int, int] = {}
    for trips, call, each in sorted(open_calls, key=lambda c: -c[0] * max(t for _, t in c[2])):
        done = [load.get(lane, 0) + ticks * trips for lane, ticks in each]
        chosen[call] = way = done.index(min(done))
        load[each[way][0]] = done[way]
    return chosen


def _iterations(body: tuple[Statement, ...], trips: int) -> Iterator[tuple[int, int]]:
    """Every call, by id, and how often it is executed."""
    for statement in body:
        if isinstance(statement, Loop):
            yield from _iterations(statement.body, trips * statement.trips)
        elif isinstance(statement, Call):
            yield id(statement), trips
