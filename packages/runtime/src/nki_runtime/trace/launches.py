"""The kernels that a program launches, as programs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from neuroncore.errors import KernelError
from neuroncore.machine.launch import running
from neuroncore.machine.observe import Watcher
from neuroncore.memory import Storage
from neuroncore.options import Options
from neuroncore.program import CoreRecorder, Program, Recorder
from neuroncore.timeline import Constants, Timeline, estimate, reject_illegal

MOST_BARS = 500_000
"""Micro-ops of a kernel up to which every one is played; beyond, carried periods are marked."""


class LaunchRecorder(Watcher):
    """The kernels of a run as programs, one per core, and the errors of kernels that no program
    expresses.

    Kernels run as without it.
    """

    def __init__(self) -> None:
        self._now = _Launch()
        self._followers: tuple[Watcher, ...] = ()
        self.programs: list[Program] = []
        self.cores: dict[int, int] = {}
        """By id of a program of several cores: how many."""
        self._core: dict[int, int] = {}
        """By id of such a program: its core."""
        self._options: dict[int, Options | None] = {}
        """By id of a program: what it ran with."""
        self.left_out: list[KernelError] = []
        self.constants: Constants | None = None
        """What estimates are made with; None: costs.json."""
        self.mode = "device"

    def follow(self, watcher: Watcher) -> None:
        """Pass what the machine does to a watcher of memory too."""
        self._followers = (*self._followers, watcher)

    def unfinished(self) -> None:
        """Add what the kernel of this thread did until it raised, if it did."""
        self.ended(None)

    def allocated(self, storage: Storage) -> None:
        if not storage.fresh:
            self._now.adopted.append(storage)
        for watcher in (*self._now.recorders, *self._followers):
            watcher.allocated(storage)

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._now.recorders = _recorders()
        for recorder in self._now.recorders:
            for storage in self._now.adopted:  # the arguments, before the launch was known
                recorder.allocated(storage)
            recorder.launched(args, kwargs)
        self._now.adopted.clear()

    def returned(self, value: Any) -> None:
        for recorder in self._now.recorders:
            self._guarded(recorder.returned, value)

    def ended(self, value: Any) -> None:
        recorders, self._now.recorders = self._now.recorders, []
        self._now.adopted.clear()
        for number, recorder in enumerate(recorders):
            self._guarded(self._add, recorder, number, len(recorders))

    def _add(self, recorder: Recorder, number: int, cores: int) -> None:
        program = recorder.program()
        self.programs.append(program)
        self._options[id(program)] = recorder.options
        if cores > 1:
            self.cores[id(program)] = cores
            self._core[id(program)] = number

    def _guarded(self, step: Any, *values: Any) -> None:
        """Do a step; a kernel for which it fails is left out."""
        try:
            step(*values)
        except KernelError as reason:
            self._now.recorders = []
            self.left_out.append(reason)

    def legal(self) -> Iterator[Program]:
        """The programs that a device runs; the others are left out."""
        for program in self.programs:
            try:
                reject_illegal(program, self._options[id(program)])
            except KernelError as reason:
                self.left_out.append(reason)
            else:
                yield program

    def timelines(self) -> list[Timeline]:
        """The timelines of the programs, equal ones played once; a kernel without is left out."""
        found: list[Timeline] = []
        for program in self.legal():
            cores = self.cores.get(id(program), 1)
            known = next((t for t in found if t.cores == cores and t.source == program), None)
            try:
                played = known or self.estimated(program)
            except KernelError as reason:
                self.left_out.append(reason)
            else:
                found.append(played.of_core(self._core.get(id(program))))
        return found

    def estimated(self, program: Program) -> Timeline:
        """The timeline of a core, with every micro-op where they are not too many."""
        cores = self.cores.get(id(program), 1)
        played = partial(
            estimate, program, mode=self.mode, constants=self.constants, cores=cores, verified=True
        )
        short = played()
        if not short.repeats or short.num_ops > MOST_BARS:
            return short
        return played(skip_periods=False)


def _passed_on(name: str) -> Callable[..., None]:
    """A watcher's method that passes events to the recorders of its thread, and to followers."""

    def method(self: LaunchRecorder, *event: Any) -> None:
        for watcher in (*self._now.recorders, *self._followers):
            getattr(watcher, name)(*event)

    return method


for _name in ("shared", "register", "will", "did", "moved", "received", "arrived"):
    setattr(LaunchRecorder, _name, _passed_on(_name))


class _Launch(threading.local):
    """The kernel that a thread is running."""

    def __init__(self) -> None:
        self.recorders: list[Recorder] = []
        self.adopted: list[Storage] = []


def _recorders() -> list[Recorder]:
    """Recorders of the launch that begins, by core."""
    launch = running("a recorder")
    if launch.cores == 1 or launch.body is None:
        return [Recorder(for_time=True)]
    return [CoreRecorder(launch.body, number, True) for number in range(launch.cores)]
