"""The body of a device loop: from NKI 0.7 on Python runs it once, the device in every turn.

While a body is traced, nothing is executed: instructions are bound and checked, and what they do is
noted in order. Each turn of the loop then does it again, with the loop variable's next value.
Python code of the body therefore runs once, also where the loop takes no turn.

A tensor that the body makes has one storage; each turn starts it anew, undefined and unknown to the
watchers.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from neuroncore.errors import (
    AttributeValueError,
    KernelError,
    LaunchError,
    UndefinedError,
    UnsupportedError,
)
from neuroncore.instructions import KernelWarning
from neuroncore.machine.captured_state import CapturedState
from neuroncore.machine.core import NeuronCore
from neuroncore.machine.launch import Launch
from neuroncore.machine.observe import Event, Watcher
from neuroncore.machine.program_scheduler import CONTROL_FLOW
from neuroncore.memory import Storage, View
from neuroncore.source_location import Place, find_place

RULE = "NKI 0.7: loops on the device, Python runs the body once"
Action = Callable[[], None]


class _Step:
    """One action of a turn; its errors are placed where the body wrote it."""

    __slots__ = ("action", "place")

    def __init__(self, action: Action, place: Place | None) -> None:
        self.action, self.place = action, place

    def __call__(self) -> None:
        try:
            self.action()
        except KernelError as wrong:
            wrong.place = self.place
            raise


class _Instruction:
    """One instruction of a turn."""

    __slots__ = ("core", "event", "execute", "operands")

    def __init__(
        self, core: NeuronCore, event: Event, execute: Callable[..., Any], operands: tuple[Any, ...]
    ) -> None:
        self.core, self.event, self.execute, self.operands = core, event, execute, operands

    def __call__(self) -> None:
        try:
            if self.core.watchers:
                self.core.perform(self.event, self.execute, self.operands)
            else:
                self.execute(*self.operands)
        except KernelError as wrong:
            wrong.place = self.event.place
            raise


class _Allocation:
    """A tensor of the body: every turn makes it."""

    __slots__ = ("core", "is_announced", "is_initialized_by_use", "storage")

    def __init__(self, core: NeuronCore, storage: Storage) -> None:
        self.core, self.storage, self.is_announced = core, storage, False
        self.is_initialized_by_use = False
        """Whether the first instruction on it writes all of it, or poisons it first."""

    def __call__(self) -> None:
        self.storage.fresh, self.storage.written = True, False
        self.announce()
        if not self.is_initialized_by_use:
            self.poison()

    def announce(self) -> None:
        """Tell the watchers of it."""
        self.is_announced = True
        if self.core.watchers:
            self.core.announce(self.storage, self.storage.place)

    def end(self) -> None:
        """The loop is over; where it took no turn, the watchers have not heard of its tensors."""
        if not self.is_announced:
            self.announce()
        self.poison()

    def poison(self) -> None:
        """Let it hold what memory holds that nothing has written."""
        if self.core.computes:
            self.storage.poison(zero=self.core.options.uninitialized == "zero")
        self.storage.fresh = False


class LoopTrace(Watcher):
    """One iteration of a device loop, traced; `run` executes it."""

    def __init__(self, core: NeuronCore) -> None:
        self.core = core
        outer = core.tracing
        self.watchers: tuple[Watcher, ...] = core.watchers if outer is None else outer.watchers
        """The watchers of the run, which hear of what a turn does when it does it."""
        self.names: dict[str, Place | None] = {} if outer is None else outer.names
        self._actions: list[Action] = []
        self._made: dict[int, _Allocation] = {}
        self._inner: list[LoopTrace] = []
        self.is_open = True
        """Whether its body is traced now, or a turn of it runs."""
        if isinstance(outer, LoopTrace):
            outer._inner.append(self)

    def run(self) -> None:
        """One turn."""
        self.is_open = True
        for action in self._actions:
            action()
        self.is_open = False

    def end(self) -> None:
        """The loop is over: what its body made is undefined from now on."""
        for made in self._made.values():
            made.end()
        for loop in self._inner:
            loop.end()

    # -- what the body does -----------------------------------------------------------------------

    def note_instruction(
        self, event: Event, execute: Callable[..., Any], operands: Iterable[Any]
    ) -> None:
        """An instruction: it is legal, and every turn executes it."""
        self._check_name(event)
        self._check_accumulation(event)
        views = tuple(operands)
        for view in views:
            if isinstance(view, View) and view.spec.fresh:
                self._use(view)
        self._actions.append(_Instruction(self.core, event, execute, views))

    def _check_name(self, event: Event) -> None:
        """Names of instructions are unique in a body, and in the bodies of loops in it."""
        if event.name is None:
            return
        if event.name in self.names:
            raise AttributeValueError(
                f"two instructions of a loop's body are called {event.name!r}", place=event.place,
                expected="names of their own", got=f"the first is at {self.names[event.name]}",
                hint="number the names of a call that Python repeats", operand="name",
                instruction=event.call.record.name, rule="NKI 0.7: loops on the device, names",
            )  # fmt: skip
        self.names[event.name] = event.place

    def _check_accumulation(self, event: Event) -> None:
        """Whether a matmul starts an accumulation group is decided once for all turns."""
        if event.call.attrs.get("accumulate", False) is not None:
            return
        dst: View = event.views["dst"]
        if id(dst.storage) in self._made or self.core.options.psum_across_turns == "run":
            return
        raise UndefinedError(
            "accumulate=None in the body of a device loop, into a tensor made outside of it",
            expected="a PSUM tensor made in the body, or accumulate=True or False", got=repr(dst),
            hint="whether it replaces or adds is decided once, for all turns; "
            "Options.psum_across_turns='run' decides it in each turn", operand="dst", position=0,
            place=event.place, instruction=event.call.record.name,
            rule="NKI 0.7: loops on the device, PSUM tiles",
        )  # fmt: skip

    def note(self, action: Action, is_placed: bool = False) -> None:
        """Something else that every turn does; `is_placed`: its errors have places of their own."""
        self._actions.append(action if is_placed else _Step(action, find_place()))

    def _use(self, view: View) -> None:
        """The first use of a tensor that nothing has written: `execute` initializes it."""
        made = self._made.get(id(view.storage))
        if made is None:
            view.initialize()  # it is made outside, and this body may run zero times
        else:
            made.is_initialized_by_use = True
            view.spec = view.spec.initialized

    def allocated(self, storage: Storage) -> None:
        if storage.fresh:
            self._made[id(storage)] = made = _Allocation(self.core, storage)
            self._actions.append(made)
        else:  # a constant exists before the kernel runs
            for watcher in self.watchers:
                watcher.allocated(storage)

    def shared(self, storage: Storage) -> None:
        self._tell(lambda watcher: watcher.shared(storage))

    def told(self, consumer: Place | None, producers: Sequence[Place | None]) -> None:
        self._tell(lambda watcher: watcher.told(consumer, producers))

    def unsupported(self, function: str, why: Any, place: Place | None, sure: bool) -> None:
        self._tell(lambda watcher: watcher.unsupported(function, why, place, sure))

    def _tell(self, call: Callable[[Watcher], None]) -> None:
        def tell() -> None:
            for watcher in self.core.watchers:
                call(watcher)

        self._actions.append(tell)


@contextmanager
def traced(core: NeuronCore) -> Iterator[LoopTrace]:
    """The block is the body of a device loop, run to be traced."""
    trace, before = LoopTrace(core), (core.tracing, core.watchers)
    core.tracing, core.watchers = trace, (trace,)
    try:
        yield trace
    finally:
        core.tracing, core.watchers = before
        trace.is_open = False


@contextmanager
def untraced(core: NeuronCore) -> Iterator[None]:
    """The block happens once, now, also in a body that is traced: registers outlive turns."""
    before = core.tracing, core.watchers
    if core.tracing is not None:
        core.tracing, core.watchers = None, core.tracing.watchers
    try:
        yield
    finally:
        core.tracing, core.watchers = before


def act(core: NeuronCore, action: Action, is_placed: bool = False) -> None:
    """Do what an instruction record does not cover: now, or in every turn of a traced body."""
    if core.tracing is None:
        action()
    else:
        core.tracing.note(action, is_placed)


def loop_ended(launch: Launch, loop: str, place: Place | None, turns: int) -> None:
    """A device loop has taken its turns. Raises LaunchError where the other core's program took
    another number of turns at the same time: their loops wait for each other."""
    counts = launch.turns.setdefault(place, {})
    mine = counts.setdefault(launch.program, [])
    mine.append(turns)
    for program, others in counts.items():
        if len(others) >= len(mine) and others[len(mine) - 1] != turns:
            raise LaunchError(
                f"{loop} takes another number of turns on each core", place=place,
                expected=f"{others[len(mine) - 1]} turns, as on core {program[0]}",
                got=f"{turns} turns on core {launch.program[0]}",
                hint="give both cores one number of turns, and let the body skip work by its "
                "offsets", rule=CONTROL_FLOW,
            )  # fmt: skip


def report_changes(core: NeuronCore, state: CapturedState, loop: str, at: Place | None) -> None:
    """Tell the watchers and the user what a body changed, as Options.loop_state says."""
    for change in state.changes():
        place = change.place or at
        for watcher in core.watchers:
            watcher.state_changed(loop, change.what, place)
        what, got = f"{change.what} in the body of {loop}, which Python runs once", change.got
        if core.options.loop_state == "error":
            raise UnsupportedError(
                what, expected="state in tensors", got=got, place=place, rule=RULE,
                hint="write a tensor that is made before the loop",
            )  # fmt: skip
        if core.options.loop_state == "warn":
            text = f"{what}: {got}; state of a device loop is kept in tensors [{RULE}]"
            file, line = (place.file, place.line) if place else ("<kernel>", 1)
            warnings.warn_explicit(text, KernelWarning, file, line)
