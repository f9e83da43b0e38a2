"""Runs a program on the machine, without a language.

Every call is compiled once: operands become views at the offsets of the moment, and what executes
them is looked up by their specs, as it is for the languages.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from neuroncore.errors import KernelError, LaunchError, Violation, raise_violations
from neuroncore.instructions import Call as MachineCall
from neuroncore.instructions import plan
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.launch import execute
from neuroncore.machine.observe import Event
from neuroncore.memory import View
from neuroncore.options import Options
from neuroncore.program.execution.operands import IndirectOperand, Operand, Tensor
from neuroncore.program.ir.binding import machine_call
from neuroncore.program.ir.nodes import Access, Allocate, Call, Loop, Statement
from neuroncore.program.ir.program import Program
from neuroncore.program.verification.findings import need_program
from neuroncore.program.verification.structure import wrong_operand
from neuroncore.surface import version_tuple
from neuroncore.targets import Target

Step = Callable[[], None]
_spec = attrgetter("spec")


def execute_program(
    program: Program,
    arrays: Sequence[np.ndarray],
    target: str | Target | None = None,
    options: Options | None = None,
) -> tuple[np.ndarray, ...]:
    """Run `program` on one core; gives its results as NumPy arrays.

    `arrays` are the parameters in order; parameters that the program writes are updated in place.
    `target` None is the program's own. Instructions are checked as a language's are; observers in
    force (observe.watched_by) see every one. Raises KernelError at the statement's origin.
    """
    need_program(program)
    _check_arguments(program, arrays)
    core = NeuronCore(target or program.target, options)

    def body(*views: View) -> tuple[View, ...]:
        machine = _Machine(program, core, views)
        for step in machine.compile(program.body):
            step()
        return tuple(machine.tensors[name].current() for name in program.results)

    body.__name__ = program.name
    return execute(body, core, arrays, {})


def _check_arguments(program: Program, arrays: Sequence[np.ndarray]) -> None:
    wanted = [f"{b.name}: {b.dtype}{list(b.shape)}" for b in program.parameters]
    expected = ", ".join(wanted) or "no arrays"
    if not isinstance(arrays, Sequence):
        raise LaunchError(
            f"program {program.name} takes its arrays in a list",
            expected=expected,
            got=type(arrays).__name__,
        )
    if len(arrays) != len(wanted):
        raise LaunchError(
            f"program {program.name} takes {len(wanted)} arrays, not {len(arrays)}",
            expected=expected,
        )
    for buffer, array, text in zip(program.parameters, arrays, wanted, strict=True):
        if not isinstance(array, (np.ndarray, np.generic)):
            raise LaunchError(
                f"parameter {buffer.name} of program {program.name} is not an array",
                expected=text,
                got=repr(array)[:80],
            )
        shape = array.shape or (1,)
        if shape != buffer.shape or array.dtype not in (buffer.dtype.storage, np.dtype(bool)):
            raise LaunchError(
                f"parameter {buffer.name} of program {program.name} is another tensor",
                expected=text,
                got=f"{array.dtype}{list(array.shape)}",
            )


class _Machine:
    """A program in compilation: its tensors, its loop variables, its steps."""

    def __init__(self, program: Program, core: NeuronCore, views: Sequence[View]) -> None:
        self.program, self.core = program, core
        self.buffers = program.buffers()
        self.tensors = {name: Tensor(b, core) for name, b in self.buffers.items()}
        for buffer, view in zip(program.parameters, views, strict=True):
            self.tensors[buffer.name].view = view
        self.slots: dict[str, int] = {}
        self.values: list[int] = []

    def compile(self, body: tuple[Statement, ...]) -> list[Step]:
        """One function per statement."""
        return [self._step(statement) for statement in body]

    def _step(self, statement: Statement) -> Step:
        match statement:
            case Loop():
                return self._loop(statement)
            case Allocate(buffer):
                begin = partial(self.tensors[buffer.name].begin, statement.origin)
                return _placed(begin, statement)
            case Call():
                absent = _absent(statement)
                if absent:
                    reject = partial(raise_violations, statement.instruction, absent)
                    return _placed(reject, statement)
                return self._watched(statement) if self.core.watchers else self._call(statement)

    def _loop(self, loop: Loop) -> Step:
        slot, values = len(self.values), self.values
        outer = self.slots.get(loop.variable)
        self.slots[loop.variable] = slot
        values.append(loop.start)
        steps = self.compile(loop.body)
        if outer is None:
            del self.slots[loop.variable]
        else:
            self.slots[loop.variable] = outer
        trips = range(loop.start, loop.stop, loop.step)

        def run() -> None:
            for values[slot] in trips:
                for step in steps:
                    step()

        return run

    def operand(self, access: Access, by_dma: bool) -> Operand:
        """The access as something that gives a view."""
        made = Operand if access.indirect is None else IndirectOperand
        index = self.operand(access.indirect.index, by_dma) if access.indirect else None
        return made(access, self.tensors[access.buffer], self, by_dma, index)

    def _sources(self, call: Call) -> list[Callable[[], Any]]:
        """Functions that give the operands, in the record's order."""
        return [
            self.operand(value, call.is_dma) if isinstance(value, Access) else _constant(value)
            for value in (call.operands.get(name) for name in call.record.operands)
        ]

    def _plans(self, call: Call) -> Callable[[Sequence[Any]], Callable[..., None]]:
        """The function that executes the call for operands with these specs, checked once."""
        names, record = list(call.record.operands), call.record
        fixed = (record, "program", version_tuple(self.program.nki), *call.attrs.values())
        remembered = self.core.plans

        def find(kinds: Sequence[Any]) -> Callable[..., None]:
            key = (*fixed, *kinds)
            found = remembered.get(key)
            if found is None:
                specs = dict(zip(names, kinds, strict=True))
                found = plan(machine_call(call, specs, self.core, self.program.nki))
                remembered[key] = found
            return found

        return find

    def _call(self, call: Call) -> Step:
        sources, find = self._sources(call), self._plans(call)
        resolve = self._resolving(call)
        storages = [source.tensor for source in sources if isinstance(source, Operand)]
        plans: dict[Any, Callable[..., None]] = {}

        def run() -> None:
            operands = [source() for source in sources]
            kinds = tuple([kind_of(value) for value in operands])
            execute = plans.get(kinds)
            if execute is None:
                execute = plans[kinds] = find(kinds)
            for tensor in storages:
                if tensor.view.storage.fresh:  # type: ignore[union-attr]
                    resolve(operands)
                    break
            execute(*operands)

        return _placed(run, call)

    def _resolving(self, call: Call) -> Callable[[Sequence[Any]], None]:
        """Poison what has never been written, unless the call is about to write all of it."""
        record = call.record
        writes = [operand.writes for operand in record.operands.values()]

        def resolve(operands: Sequence[Any]) -> None:
            specs = dict(zip(record.operands, map(kind_of, operands), strict=True))
            covers = record.covers(machine_call(call, specs, self.core, self.program.nki))
            views = [(v, w) for v, w in zip(operands, writes, strict=True) if isinstance(v, View)]
            read = {id(v.storage) for v, w in views if not w}
            for view, written in views:
                all_of_it = view.array.size == view.storage.flat.size and not view.spec.repeats
                if view.storage.fresh:
                    claims = written and covers and all_of_it and id(view.storage) not in read
                    view.claim() if claims else view.initialize()

        return resolve

    def _watched(self, call: Call) -> Step:
        """The call with observers: they get an event before and after."""
        sources, find, resolve = self._sources(call), self._plans(call), self._resolving(call)
        names = list(call.record.operands)
        known: dict[Any, tuple[Callable[..., None], MachineCall]] = {}

        def run() -> None:
            operands = [source() for source in sources]
            kinds = tuple(map(kind_of, operands))
            if kinds not in known:
                specs = dict(zip(names, kinds, strict=True))
                made = machine_call(call, specs, self.core, self.program.nki)
                known[kinds] = find(kinds), made
            execute, made = known[kinds]
            event = Event(made, dict(zip(names, operands, strict=True)), call.origin, call.name)
            for watcher in self.core.watchers:
                watcher.will(event)
            resolve(operands)
            execute(*operands)
            for watcher in self.core.watchers:
                watcher.did(event)

        return _placed(run, call)


def _absent(call: Call) -> list[Violation]:
    """Operands that the instruction needs and the call does not have."""
    needed = ((n, o) for n, o in call.record.operands.items() if call.operands.get(n) is None)
    return [wrong for name, operand in needed if (wrong := wrong_operand(name, operand, None))]


def kind_of(value: Any) -> Any:
    """An operand's part of a signature: a spec, a number's type, or None."""
    return value.spec if value.__class__ is View else None if value is None else value.__class__


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def _placed(run: Step, statement: Allocate | Call) -> Step:
    """`run`, with its errors at the statement's origin."""

    def step() -> None:
        try:
            run()
        except KernelError as wrong:
            if statement.origin is not None:
                wrong.place, wrong.position = statement.origin, None
            if isinstance(statement, Call):
                wrong.instruction = wrong.instruction or statement.instruction
            raise

    return step
