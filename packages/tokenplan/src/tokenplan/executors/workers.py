"""Jobs on workers that may be lost: a queue, a job per worker, limits of time, a second run.

What a worker is, a pool or a cluster decides: `Fleet` starts workers and receives their messages.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple, Protocol, Self

from neuroncore.commands.interruption import termination_interrupts, uninterrupted
from tokenplan.executors.execution import poisoned, release, time_expired
from tokenplan.executors.protocol import (
    LOST_LIMIT,
    Event,
    ExecutorError,
    ExecutorLostError,
    Failed,
    Finished,
    Job,
    Limits,
    Reported,
    Watch,
    WorkerLost,
    WorkerVersionError,
)

START_LIMIT = 3
"""So many workers in a row may end before they are ready, while no job ends."""
GRACE_S = 20.0
"""How long an interrupted job may take to end."""
WAIT_S, IDLE_S = 1.0, 0.1
"""How long a wait for messages is at most, without and with other work."""


class Ready(NamedTuple):
    """A worker that can take jobs: the release that it runs."""

    release: str


class Gone(NamedTuple):
    """A worker that has ended; `log` where its fleet has no other."""

    what: str
    log: str = ""


Message = Ready | Gone | Event


class Fleet(Protocol):
    """Starts and stops workers, receives their messages."""

    def open(self, jobs: int) -> None:
        """Before so many are started."""
        ...

    def start(self, number: int) -> Any: ...

    def send(self, worker: Any, job: Job, limits: Limits) -> None: ...

    def interrupt(self, worker: Any) -> bool:
        """Let its job end early in good order; False where that is not possible."""
        ...

    def log(self, worker: Any) -> str:
        """The end of what its job has printed, as far as known."""
        ...

    def stop(self, worker: Any) -> None:
        """At once, with everything that it has started."""
        ...

    def receive(self, workers: list[Any], timeout_s: float) -> Iterable[tuple[Any, Message]]: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class _Worker:
    handle: Any
    name: str
    is_ready: bool = False
    job: Job | None = None
    deadline: float = inf

    @property
    def key(self) -> str | None:
        """Of the job that it runs."""
        return None if self.job is None else self.job.key


@dataclass(slots=True)
class WorkerExecutor:
    """An executor over a fleet of `jobs` workers."""

    name: str
    fleet: Fleet
    jobs: int
    limits: Limits = field(default_factory=Limits)
    startup_s: float = 0.0
    _workers: list[_Worker] = field(default_factory=list)
    _queue: deque[Job] = field(default_factory=deque)
    _lost: Counter[str] = field(default_factory=Counter)
    _started: int = 0
    _not_ready: int = 0
    _is_ending: bool = False
    _began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ExecutorError("no worker is allowed", expected="1 job or more at a time")

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        with termination_interrupts(), ExitStack() as opened:
            opened.callback(self.__exit__)
            self.fleet.open(self.jobs)
            for _ in range(self.jobs):
                self._start()
            opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            self.fleet.stop(worker.handle)
        self._workers.clear()
        self.fleet.close()

    def submit(self, job: Job) -> None:
        self._queue.append(job)

    def cancel(self, key: str) -> None:
        self._queue = deque(job for job in self._queue if job.key != key)
        for worker in list(self._workers):
            if worker.job is not None and worker.job.key == key:
                self._replace(worker)

    @property
    def has_jobs(self) -> bool:
        """Whether a job waits or runs."""
        return self.num_jobs > 0

    @property
    def num_jobs(self) -> int:
        """Jobs that wait or run."""
        return len(self._queue) + self.num_running

    @property
    def num_running(self) -> int:
        """Jobs that run."""
        return sum(worker.job is not None for worker in self._workers)

    def run(self, watch: Watch, idle: Callable[[], None] | None = None) -> None:
        with uninterrupted() as seen:  # an event is handled before
            while self.has_jobs and not seen:
                self.step(watch, WAIT_S if idle is None else IDLE_S)
                if idle is not None:
                    idle()
            if seen:
                self._end(watch)

    def _end(self, watch: Watch) -> None:
        """Drop jobs that wait, handle the ends of the ones that run, cancel what does not end."""
        self._queue.clear()
        self._is_ending = True
        running = [worker.handle for worker in self._workers if worker.job is not None]
        ends = time.monotonic() + GRACE_S * all(self.fleet.interrupt(each) for each in running)
        while self.has_jobs and (left_s := ends - time.monotonic()) > 0:
            self.step(watch, min(WAIT_S, left_s))
        for worker in list(self._workers):
            if worker.job is not None:
                self.cancel(worker.job.key)

    def step(self, watch: Watch, wait_s: float) -> None:
        """Assign jobs, handle the messages of at most `wait_s` seconds, end what takes too long."""
        self._assign()
        self._receive(watch, wait_s)
        self._expire(watch)

    # -- workers ----------------------------------------------------------------------------------

    def _start(self) -> None:
        self._started += 1
        handle = self.fleet.start(self._started)
        self._workers.append(_Worker(handle, f"worker {self._started}"))

    def _replace(self, worker: _Worker) -> None:
        self.fleet.stop(worker.handle)
        self._workers.remove(worker)
        if not self._is_ending:
            self._start()

    def _assign(self) -> None:
        for worker in self._workers:
            if worker.is_ready and worker.job is None and self._queue:
                worker.job = self._queue.popleft()
                worker.deadline = time.monotonic() + self.limits.seconds
                self.fleet.send(worker.handle, worker.job, self.limits)

    def _expire(self, watch: Watch) -> None:
        now = time.monotonic()
        for worker in list(self._workers):
            if worker.job is not None and now >= worker.deadline:
                job, log = worker.job, self.fleet.log(worker.handle)
                self._replace(worker)
                watch(time_expired(job, self.limits, worker.name, log))

    def _receive(self, watch: Watch, wait_s: float) -> None:
        by_handle = {id(worker.handle): worker for worker in self._workers}
        soonest = min((each.deadline for each in self._workers), default=inf) - time.monotonic()
        handles = [worker.handle for worker in self._workers]
        for handle, message in self.fleet.receive(handles, max(0.0, min(wait_s, soonest))):
            worker = by_handle[id(handle)]
            if worker in self._workers:  # an earlier message may have ended it
                self._handle(worker, message, watch)

    def _handle(self, worker: _Worker, message: Message, watch: Watch) -> None:
        if not isinstance(message, Ready | Gone) and message.key != worker.key:
            return  # of a job that has ended
        match message:
            case Ready(found):
                self._ready(worker, found)
            case Gone(what, log):
                self._gone(worker, what, log or self.fleet.log(worker.handle), watch)
            case Reported(key, value):
                watch(Reported(key, value, worker.name))
            case Finished() | Failed():
                worker.job, worker.deadline, self._not_ready = None, inf, 0
                del self._lost[message.key]
                watch(message._replace(worker=worker.name))

    def _ready(self, worker: _Worker, found: str) -> None:
        if found != release():
            raise WorkerVersionError(
                f"{worker.name} runs another version", expected=release(), got=found,
                hint="install the same version on every machine",
            )  # fmt: skip
        worker.is_ready, self._not_ready = True, 0
        if self._started == self.jobs:  # no worker has been replaced
            self.startup_s = time.monotonic() - self._began

    def _gone(self, worker: _Worker, what: str, log: str, watch: Watch) -> None:
        self._not_ready += not worker.is_ready
        if self._not_ready >= START_LIMIT:
            raise ExecutorLostError(f"{START_LIMIT} workers in a row have ended at their start",
                got=f"{what}\n{log}".rstrip())  # fmt: skip
        job = worker.job
        self._replace(worker)
        watch(WorkerLost(None if job is None else job.key, what, worker.name))
        if job is None or self._is_ending:
            return
        self._lost[job.key] += 1
        if self._lost[job.key] >= LOST_LIMIT:
            watch(poisoned(job, what, worker.name, log))
        else:
            self._queue.appendleft(job)
