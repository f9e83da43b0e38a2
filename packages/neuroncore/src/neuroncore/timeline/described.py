"""What a program's calls ask of the machine, found once for all ways in which it is played."""

from __future__ import annotations

from neuroncore.core import NeuronCore
from neuroncore.instructions import Call as MachineCall
from neuroncore.program import Call, Program
from neuroncore.program.binding import machine_call, specs_of
from neuroncore.program.effects import BoundEffect, bound_effects
from neuroncore.program.findings import visit
from neuroncore.work import MicroOp, Pass


class Described:
    """The calls of one program; a program of the same calls in another order shares it."""

    def __init__(self, program: Program, core: NeuronCore) -> None:
        self.program, self.core, self.buffers = program, core, program.buffers()
        self._first = {
            id(call): {name: values[0] for name, values in ranges.items()}
            for call, ranges in visit(program.body)
            if ranges
        }
        """What the loop variables around a call are first."""
        self._made: dict[int, MachineCall] = {}
        self._places: dict[int, tuple[BoundEffect, ...]] = {}
        self._work: dict[int, tuple[MachineCall, list[MicroOp]]] = {}

    def made(self, call: Call) -> MachineCall:
        """The call as the machine's records take it in its first iteration."""
        found = self._made.get(id(call))
        if found is None:
            specs = specs_of(call, self.buffers, self.core, self._first.get(id(call)))
            found = machine_call(call, specs, self.core, self.program.nki)
            self._made[id(call)] = found
        return found

    def places(self, call: Call) -> tuple[BoundEffect, ...]:
        """What the call touches."""
        found = self._places.get(id(call))
        if found is None:
            found = self._places[id(call)] = bound_effects(call, self.made(call), self.buffers)
        return found

    def work(self, made: MachineCall) -> list[MicroOp]:
        """The micro-ops of a call, which is remembered."""
        found = self._work.get(id(made))
        if found is None:
            found = self._work[id(made)] = made, made.record.work(made)
        return found[1]

    def passes(self, made: MachineCall) -> list[Pass]:
        """What it asks of VectorE, ScalarE or GpSimdE, if it is one trip through one of them."""
        work = self.work(made)
        return [op for op in work if isinstance(op, Pass)] if len(work) == 1 else []
