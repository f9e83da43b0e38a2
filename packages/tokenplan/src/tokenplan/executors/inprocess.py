"""Jobs one after the other in this process."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import isinf
from typing import Any, Self

from neuroncore.commands.interruption import termination_interrupts
from tokenplan.executors.execution import TimeSpent, execute, time_expired
from tokenplan.executors.protocol import (
    Failed,
    Finished,
    Interrupted,
    Job,
    Limits,
    Reported,
    Watch,
)

WORKER = "this process"


class InProcess:
    """Runs one job after the other. Its limit of time stops Python code alone.

    A job is stopped in its own code: what handles an event does that to its end.
    """

    name = "inprocess"
    startup_s = 0.0

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits, self._queue, self.jobs = limits or Limits(), deque[Job](), 1
        self._is_in_job, self._stops = False, list[type[BaseException]]()
        self._pending = deque[type[BaseException]]()
        """The ones that came while an event was handled: raised once, behind it."""

    def submit(self, job: Job) -> None:
        self._queue.append(job)

    def cancel(self, key: str) -> None:
        self._queue = deque(job for job in self._queue if job.key != key)

    def run(self, watch: Watch, idle: Callable[[], None] | None = None) -> None:
        with termination_interrupts(), self._interrupts():
            while self._queue:
                watch(self._execute(self._queue.popleft(), watch))
                if idle is not None:
                    idle()
                if Interrupted in self._stops:  # the job has ended in good order
                    raise Interrupted

    def _execute(self, job: Job, watch: Watch) -> Finished | Failed:
        def report(value: Any) -> None:
            self._is_in_job = False
            watch(Reported(job.key, value, WORKER))
            self._is_in_job = True
            if self._pending:
                raise self._pending.popleft()

        try:
            with self._time_limit():
                self._is_in_job = True
                return execute(job, self._limits, report, WORKER)
        except TimeSpent:
            return time_expired(job, self._limits, WORKER)
        finally:
            self._is_in_job = False
            self._pending.clear()

    def _stop(self, kind: type[BaseException]) -> None:
        is_second = kind in self._stops
        self._stops.append(kind)
        if self._is_in_job or is_second:
            raise kind
        self._pending.append(kind)

    @contextmanager
    def _interrupts(self) -> Iterator[None]:
        """Ctrl-C stops the job, where it raises KeyboardInterrupt and this is the main thread."""
        is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if not is_default or threading.current_thread() is not threading.main_thread():
            yield
            return
        signal.signal(signal.SIGINT, lambda *_: self._stop(Interrupted))
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._stops.clear()

    @contextmanager
    def _time_limit(self) -> Iterator[None]:
        if isinf(self._limits.seconds):
            yield
            return
        before = signal.signal(signal.SIGALRM, lambda *_: self._stop(TimeSpent))
        signal.setitimer(signal.ITIMER_REAL, self._limits.seconds)
        try:
            yield
        finally:
            self._is_in_job = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            self._stops[:] = [kind for kind in self._stops if kind is not TimeSpent]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.clear()
