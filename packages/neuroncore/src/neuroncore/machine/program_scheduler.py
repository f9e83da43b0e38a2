"""Running the programs of a launch that wait for each other, one at a time."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from contextvars import copy_context
from typing import Any

import numpy as np

from neuroncore.errors import LaunchError
from neuroncore.machine.core import NeuronCore

CONTROL_FLOW = "NKI: both cores of an LNC follow the same control flow"


class _AbandonedError(BaseException):
    """The launch is over: another program failed."""


class ProgramScheduler:
    """Runs the programs of a launch, each until it waits for another core or ends.

    One program runs at a time, so that a launch is the same from run to run. A second thread exists
    from the first time that a program waits to the end of the launch, and never where none waits.

    `run` runs the program of a number and gives what it returns; `beside` is true where another has
    begun and not ended.
    """

    def __init__(self, core: NeuronCore, count: int, run: Callable[[int, bool], Any]) -> None:
        self._core = core
        self._run = run
        self._count = count
        self._results: dict[int, Any] = {}
        self._failed: BaseException | None = None
        self._whose = 0
        self._changed = threading.Condition()
        self._threads: dict[int, threading.Thread] = {}
        self._sent: dict[tuple[int, Hashable], deque[Any]] = defaultdict(deque)
        self._waiting: dict[int, Hashable] = {}

    def run_all(self) -> list[Any]:
        """Run every program; their results in order."""
        try:
            for number in range(self._count):
                if number not in self._threads:
                    self._results[number] = self._run(number, False)
                elif number not in self._results:
                    self._give_turn_to(number, back_to=0)
        finally:
            self._abandon()
        return [self._results[number] for number in range(self._count)]

    def meet(self, me: int, pipe: Hashable, offer: Any, what: str) -> Any:
        """Leave `offer` in a pipe for the other of two programs, and wait for what it leaves there.

        `what` names the call in messages. Raises LaunchError where no other program is there, has
        ended, or waits for something else.
        """
        if self._count != 2:
            raise LaunchError(
                f"{what} waits for another core, and there is none",
                expected="a launch on two cores: kernel[2](…)",
                got=f"{self._count} core" + "s" * (self._count != 1),
                hint="leave it out where nl.num_programs(0) is 1",
                rule=f"NKI: {what}",
            )
        other = 1 - me
        self._sent[me, pipe].append(offer)
        arriving = self._sent[other, pipe]
        self._waiting[me] = pipe
        while not arriving:
            self._reject_to_wait(other, what)
            self._give_turn_to(other, back_to=me)
        del self._waiting[me]
        return arriving.popleft()

    def _reject_to_wait(self, other: int, what: str) -> None:
        pipe = self._waiting.get(other)
        if other in self._results:
            got = f"core {other} has ended"
        elif other in self._waiting and not self._sent[1 - other, pipe]:
            got = f"core {other} waits at {pipe!r}"
        else:
            return
        raise LaunchError(
            f"{what} waits for core {other}, which never gets there",
            expected=f"{what} on both cores, in the same order",
            got=got,
            hint="keep it out of branches on nl.program_id",
            rule=CONTROL_FLOW,
        )

    def _give_turn_to(self, number: int, back_to: int) -> None:
        """Let another program run until it is the turn of `back_to` again."""
        registers, self._core.accumulators = self._core.accumulators, {}
        with self._changed:
            self._whose = number
            if number != 0 and number not in self._threads:
                self._start(number)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._whose == back_to or self._failed is not None)
        self._core.accumulators = registers
        if self._failed is not None:
            raise self._failed if back_to == 0 else _AbandonedError

    def _start(self, number: int) -> None:
        context = copy_context()
        thread = threading.Thread(target=context.run, args=(self._thread, number), daemon=True)
        self._threads[number] = thread
        thread.start()

    def _thread(self, number: int) -> None:
        try:
            with np.errstate(all="ignore"):
                self._results[number] = self._run(number, True)
        except _AbandonedError:
            pass  # the failure that ended the launch is raised by `run_all`
        except BaseException as wrong:
            self._failed = wrong
        with self._changed:
            self._whose = 0
            self._changed.notify_all()

    def _abandon(self) -> None:
        """End the threads of programs that still wait."""
        if len(self._results) < self._count:
            with self._changed:
                self._failed = self._failed or _AbandonedError()
                self._changed.notify_all()
        for thread in self._threads.values():
            thread.join()
