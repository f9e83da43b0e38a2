"""The accesses of statements, with the loops inside of them: collected once per statement.

Programs that a search visits share most of their statements, so accesses are cached by identity. A
buffer that a statement allocates inside is not visible around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from neuroncore.effects import Touch as Kind
from neuroncore.enums import ReduceCmd
from neuroncore.machine.core import NeuronCore
from neuroncore.program import Access, Allocate, Buffer, Call, Loop, Statement
from neuroncore.program.ir.binding import machine_call, specs_of

SCALAR, VECTOR = "scalar.accumulators", "vector.accumulators"
"""Registers that a call may reset. The registers of random numbers are never reset."""

READ, WRITE, ADD, CLOBBER = "R", "W", "A", "C"
_KINDS = {Kind.read: READ, Kind.write: WRITE, Kind.accumulate: ADD, Kind.clobber: CLOBBER}

MAX_CACHED = 1 << 16
"""Entries of each cache; beyond it the cache is cleared."""


class Range(NamedTuple):
    """A loop without its body."""

    variable: str
    start: int
    stop: int
    step: int

    @property
    def last(self) -> int:
        return self.start + (len(range(self.start, self.stop, self.step)) - 1) * self.step


class CallAccess(NamedTuple):
    """One access of one call. `access` is None where it is a register of an engine."""

    buffer: str
    kind: str
    access: Access | None
    loops: tuple[Range, ...] = ()
    """The loops between the statement and the call, outermost first."""
    covers: bool = False
    """Whether the call resets an accumulator before it uses it."""


def carried_state(call_accesses: Sequence[CallAccess]) -> str | None:
    """The first buffer or register that a statement reads after its own previous execution wrote
    it; None where executing it twice equals executing it once.
    """
    written = {t.buffer for t in call_accesses if t.kind != READ}
    for touch in call_accesses:
        is_register = touch.access is None and touch.kind != CLOBBER
        uses = touch.kind == ADD or is_register or (touch.kind == READ and touch.buffer in written)
        if uses and not touch.covers:
            return touch.buffer
    return None


def range_of(loop: Loop) -> Range:
    return Range(loop.variable, loop.start, loop.stop, loop.step)


@cache
def core_of(target: str) -> NeuronCore:
    return NeuronCore(target, watchers=())


Effects = tuple[tuple[str, str, bool], ...]
"""Operand or register, kind, whether it is a register."""

_effects: dict[tuple[Any, ...], tuple[Any, Effects]] = {}
_sums: dict[tuple[int, str, str], tuple[Statement, tuple[CallAccess, ...]]] = {}


def effects_of(call: Call, buffers: Mapping[str, Buffer], target: str, nki: str) -> Effects:
    """The effects of a call on each operand, by its record, attributes and kinds of operands."""
    kinds = tuple([
        value.indirect is not None if isinstance(value, Access) else type(value)
        for value in call.operands.values()
    ])  # fmt: skip
    key = (call.instruction, id(call.attrs), kinds, target, nki)
    known = _effects.get(key)
    if known is None:
        if len(_effects) >= MAX_CACHED:
            _effects.clear()
        core = core_of(target)
        made = machine_call(call, specs_of(call, buffers, core), core, nki)
        found = tuple((e.operand, _KINDS[e.touch], e.is_register) for e in made.effects)
        known = _effects[key] = (call.attrs, found)
    return known[1]


class Reader(NamedTuple):
    """Collects the accesses of the statements of a program."""

    buffers: Mapping[str, Buffer]
    target: str
    nki: str

    def accesses(self, statement: Statement) -> tuple[CallAccess, ...]:
        """The accesses of a statement to buffers that are visible around it, in program order."""
        key = (id(statement), self.target, self.nki)
        known = _sums.get(key)
        if known is not None:
            return known[1]
        match statement:
            case Call():
                found = self._call(statement)
            case Loop():
                found = self._loop(statement)
            case Allocate():
                found = ()
        if len(_sums) >= MAX_CACHED:
            _sums.clear()
        _sums[key] = (statement, found)
        return found

    def block(self, body: tuple[Statement, ...]) -> list[CallAccess]:
        """The accesses of consecutive statements."""
        return [touch for statement in body for touch in self.accesses(statement)]

    def _loop(self, loop: Loop) -> tuple[CallAccess, ...]:
        made = {s.buffer.name for s in loop.body if isinstance(s, Allocate)}
        here = (range_of(loop),)
        return tuple(
            CallAccess(t.buffer, t.kind, t.access, here + t.loops, t.covers)
            for t in self.block(loop.body)
            if t.buffer not in made
        )

    def _call(self, call: Call) -> tuple[CallAccess, ...]:
        found = []
        effects = effects_of(call, self.buffers, self.target, self.nki)
        registers = [(name, kind) for name, kind, is_register in effects if is_register]
        begins = call.attrs.get("reduce_cmd") is not ReduceCmd.reduce
        found += [
            CallAccess(n, kind, None, covers=begins and n in (SCALAR, VECTOR))
            for n, kind in registers
        ]
        for operand, kind, is_register in effects:
            if is_register:
                continue
            name, _, index = operand.partition(".")
            access = call.operands[name]
            assert isinstance(access, Access)
            if index:
                assert access.indirect is not None
                access = access.indirect.index
            found.append(CallAccess(access.buffer, kind, access))
        return tuple(found)
