"""Programs with some of their calls replaced by other statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, cached_property
from typing import Any

from neuroncore.enums import MemorySpace
from neuroncore.instructions import Call as MachineCall
from neuroncore.machine.core import NeuronCore
from neuroncore.memory.occupancy import units_held
from neuroncore.program import (
    Access,
    Buffer,
    Call,
    Loop,
    Program,
    Statement,
    accesses,
    peaks,
)
from neuroncore.program.ir.binding import machine_call, specs_of
from neuroncore.program.ir.traversal import Ranges
from neuroncore.program.verification.limits import limits
from neuroncore.program.verification.verify import STRICT

Change = Callable[[Call, Ranges], tuple[Statement, ...]]


def rewritten(program: Program, change: Change) -> Program:
    """The program with the statements that `change` has for each call and its loop variables."""
    return replace(program, body=tuple(_mapped(program.body, change, {})))


def _mapped(body: tuple[Statement, ...], change: Change, ranges: Ranges) -> Iterator[Statement]:
    for statement in body:
        if isinstance(statement, Loop):
            inner = {**ranges, statement.variable: statement.values}
            yield replace(statement, body=tuple(_mapped(statement.body, change, inner)))
        elif isinstance(statement, Call):
            yield from change(statement, ranges)
        else:
            yield statement


class Legality:
    """What a machine takes of the calls of one program, and of calls that replace them."""

    def __init__(self, program: Program) -> None:
        self._program, self._nki = program, program.nki

    @cached_property
    def buffers(self) -> dict[str, Buffer]:
        return self._program.buffers()

    @cached_property
    def _core(self) -> NeuronCore:
        return _strict(self._program.target)

    def takes(self, call: Call, ranges: Ranges, made: Iterable[Buffer] = ()) -> bool:
        """Whether a call, which may name buffers that are `made` for it, is within all limits while
        its loop variables run over their ranges.
        """
        buffers = {**self.buffers, **{buffer.name: buffer for buffer in made}}
        return not limits(call, ranges, buffers, self._core, self._nki)

    def overwrites(self, call: Call) -> bool:
        """Whether a call writes all of its outputs anew, and has nothing to do with registers."""
        effects = call.record.effects(self._made(call))
        return self.covers(call) and not any(effect.is_register for effect in effects)

    def covers(self, call: Call) -> bool:
        """Whether a call writes all of its outputs anew."""
        return call.record.covers(self._made(call))

    def may_live_longer(self, *names: str) -> bool:
        """Whether these buffers may be live where the program has no use of them: at a fixed
        address the program may have another buffer then.

        Every transformation that lengthens a live range, or needs more bytes for it, has to ask.
        """
        return all(self.buffers[name].address is None for name in names)

    def _made(self, call: Call) -> MachineCall:
        specs = specs_of(call, self.buffers, self._core)
        return machine_call(call, specs, self._core, self._nki)


class FreeMemory:
    """What no buffer of a program occupies at any time: bytes of a partition, banks of PSUM."""

    def __init__(self, program: Program, core: NeuronCore) -> None:
        self._program, self._core = program, core

    @cached_property
    def units(self) -> dict[MemorySpace, int]:
        """What is free, less than nothing where the program does not fit."""
        target, free = self._core.target, self._core.free_bytes_of
        held = peaks(self._program, target)
        return {s: units_held(s, target, free(s)) - peak.held for s, peak in held.items()}

    def take(self, buffer: Buffer, times: int = 1) -> bool:
        """Take memory for so many more buffers like this one; False where it is not enough."""
        needed = self._needed(buffer, times)
        if needed and needed > self.units[buffer.space]:
            return False
        self.units[buffer.space] -= needed
        return True

    def fits(self, *buffers: Buffer) -> bool:
        """Whether these buffers fit for a moment, or the program does not fit without them."""
        free = self.units
        return all(not 0 <= free[b.space] < self._needed(b, 1) for b in buffers)

    def contains(self, changed: Program) -> bool:
        """Whether the changed program fits, or takes no more than this one, which does not."""
        after = FreeMemory(changed, self._core).units
        return all(units >= min(0, self.units[space]) for space, units in after.items())

    def _needed(self, buffer: Buffer, times: int) -> int:
        return units_held(buffer.space, self._core.target, buffer.free_bytes) * times


@cache
def _strict(target: str) -> NeuronCore:
    return NeuronCore(target, STRICT, watchers=())


def written(call: Call) -> list[str]:
    """The buffers of its outputs."""
    return [call.accesses[n].buffer for n in call.record.outputs if n in call.accesses]


def read(call: Call) -> list[str]:
    """The buffers of its inputs and of the indices of all of its operands."""
    outputs = [call.accesses[n] for n in call.record.outputs if n in call.accesses]
    return [a.buffer for a in accesses(call) if not any(a is output for output in outputs)]


def part(access: Access, axis: int, first: int, most: int) -> Access:
    """At most so many indices of an axis, from one on."""
    shape = list(access.shape)
    shape[axis] = min(most, shape[axis] - first)
    offset = access.offset + first * access.strides[axis]
    return replace(access, shape=tuple(shape), offset=offset)


def fields(call: Call) -> dict[str, Any]:
    """Where a call comes from, for the calls that replace it."""
    return {"origin": call.origin, "name": call.name}
