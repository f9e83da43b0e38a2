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
from neuroncore.executors.execution import TimeSpent, execute, time_expired
from neuroncore.executors.protocol import (
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
    """Runs each job in its turn. Its limit of time stops Python code alone."""

    name = "inprocess"
    startup_s = 0.0

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits, self._queue, self.jobs = limits or Limits(), deque[Job](), 1

    def submit(self, job: Job) -> None:
        self._queue.append(job)

    def cancel(self, key: str) -> None:
        self._queue = deque(job for job in self._queue if job.key != key)

    def run(self, watch: Watch, idle: Callable[[], None] | None = None) -> None:
        with termination_interrupts(), _interrupts() as seen:
            while self._queue:
                watch(self._execute(self._queue.popleft(), watch))
                if idle is not None:
                    idle()
                if seen:  # the job has ended in good order
                    raise Interrupted

    def _execute(self, job: Job, watch: Watch) -> Finished | Failed:
        def report(value: Any) -> None:
            watch(Reported(job.key, value, WORKER))

        try:
            with _time_limit(self._limits.seconds):
                return execute(job, self._limits, report, WORKER)
        except TimeSpent:
            return time_expired(job, self._limits, WORKER)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._queue.clear()


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """What has interrupted, where Ctrl-C raises KeyboardInterrupt and this is the main thread."""
    seen: list[int] = []

    def interrupt(number: int, *_: object) -> None:
        seen.append(number)
        raise Interrupted

    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_default or threading.current_thread() is not threading.main_thread():
        yield seen
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if isinf(seconds):
        yield
        return

    def stop(*_: object) -> None:
        raise TimeSpent

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
