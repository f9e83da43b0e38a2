"""Jobs one after the other in this process."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from math import isinf
from typing import Any, Self

from neuroncore.executors.execution import execute, time_expired
from neuroncore.executors.protocol import Failed, Finished, Job, Limits, Reported, Watch

WORKER = "this process"


class _TimeSpent(BaseException):
    """The limit of a job is reached."""


class InProcess:
    """Runs each job in its turn. Its limit of time stops Python code alone."""

    name = "inprocess"
    jobs = 1
    startup_s = 0.0

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits, self._jobs = limits or Limits(), deque[Job]()

    def submit(self, job: Job) -> None:
        self._jobs.append(job)

    def cancel(self, key: str) -> None:
        self._jobs = deque(job for job in self._jobs if job.key != key)

    def run(self, watch: Watch) -> None:
        while self._jobs:
            watch(self._execute(self._jobs.popleft(), watch))

    def _execute(self, job: Job, watch: Watch) -> Finished | Failed:
        def report(value: Any) -> None:
            watch(Reported(job.key, value, WORKER))

        try:
            with _time_limit(self._limits.seconds):
                return execute(job, self._limits, report, WORKER)
        except _TimeSpent:
            return time_expired(job, self._limits, WORKER)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._jobs.clear()


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if isinf(seconds):
        yield
        return

    def stop(*_: object) -> None:
        raise _TimeSpent

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
