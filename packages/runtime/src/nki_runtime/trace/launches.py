"""The kernels that a program launches, as programs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from neuroncore.errors import KernelError
from neuroncore.machine.observe import Watcher
from neuroncore.memory import Storage
from neuroncore.program import Program, Recorder, check
from neuroncore.timeline import Constants, Timeline, estimate

MOST_BARS = 500_000
"""Micro-ops of a kernel up to which every one is played; beyond, carried periods are marked."""


class LaunchRecorder(Watcher):
    """The kernels of a run as programs, and the errors of kernels that no program expresses.

    Kernels run as without it.
    """

    def __init__(self) -> None:
        self._now = _Launch()
        self.programs: list[Program] = []
        self.left_out: list[KernelError] = []
        self.constants: Constants | None = None
        """What estimates are made with; None: costs.json."""

    def unfinished(self) -> None:
        """Add what the kernel of this thread did until it raised, if it did."""
        self.ended(None)

    def allocated(self, storage: Storage) -> None:
        if not storage.fresh:
            self._now.adopted.append(storage)
        if self._now.recorder is not None:
            self._now.recorder.allocated(storage)

    def launched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        recorder = self._now.recorder = Recorder(for_time=True)
        for storage in self._now.adopted:  # the arguments, before the launch was known
            recorder.allocated(storage)
        self._now.adopted.clear()
        recorder.launched(args, kwargs)

    def returned(self, value: Any) -> None:
        if self._now.recorder is not None:
            self._guarded(self._now.recorder.returned, value)

    def ended(self, value: Any) -> None:
        recorder, self._now.recorder = self._now.recorder, None
        self._now.adopted.clear()
        if recorder is not None:
            self._guarded(self._add, recorder)

    def _add(self, recorder: Recorder) -> None:
        program = recorder.program()
        check(program, recorder.options, content=False)
        self.programs.append(program)

    def _guarded(self, step: Any, value: Any) -> None:
        """Do a step; a kernel for which it fails is left out."""
        try:
            step(value)
        except KernelError as reason:
            self._now.recorder = None
            self.left_out.append(reason)

    def timelines(self) -> list[Timeline]:
        """The timelines of the programs, equal ones shared; a kernel without is left out."""
        found: list[Timeline] = []
        for program in self.programs:
            known = next((t for t in found if t.program == program), None)
            try:
                found.append(known or _estimate(program, self.constants))
            except KernelError as reason:
                self.left_out.append(reason)
        return found


def _passed_on(name: str) -> Callable[..., None]:
    """What happens in a kernel goes to the recorder of its thread, if there is one."""

    def method(self: LaunchRecorder, *event: Any) -> None:
        if self._now.recorder is not None:
            getattr(self._now.recorder, name)(*event)

    return method


for _name in ("register", "will", "did", "moved", "received", "arrived"):
    setattr(LaunchRecorder, _name, _passed_on(_name))


class _Launch(threading.local):
    """The kernel that a thread is running."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.adopted: list[Storage] = []


def _estimate(program: Program, values: Constants | None) -> Timeline:
    """The timeline, with every micro-op where they are not too many."""
    short = estimate(program, constants=values, verified=True)
    if not short.repeats or short.num_ops > MOST_BARS:
        return short
    return estimate(program, constants=values, verified=True, skip_periods=False)
