"""Jobs, their limits, the events of an executor.

A job is a function by name, called with its payload and a function that reports intermediate
values: `function(payload, report) -> value`. Payloads, reports and values are pickled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple, Protocol, Self

from neuroncore.errors import KernelError, OptionError

Report = Callable[[Any], None]

LOST_LIMIT = 2
"""A job that has lost so many workers is not run again."""


class Job(NamedTuple):
    """`function` is MODULE:FUNCTION or FILE.py:FUNCTION; `key` identifies the job in events."""

    key: str
    function: str
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of each job: seconds, and bytes of address space beyond what the worker has.

    Raises ExecutorError where a limit allows nothing.
    """

    seconds: float = inf
    num_bytes: float = inf

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and self.num_bytes > 0):
            raise ExecutorError("a limit of a job is not positive", got=str(self))


class Reported(NamedTuple):
    """An intermediate value of a running job; a job that runs again reports again."""

    key: str
    value: Any
    worker: str


class Finished(NamedTuple):
    """The value of a job."""

    key: str
    value: Any
    worker: str
    seconds: float


class Failed(NamedTuple):
    """A job without a value; `kind` is "error", "time", "memory" or "poisoned"."""

    key: str
    kind: str
    what: str
    log: str
    worker: str
    seconds: float


class WorkerLost(NamedTuple):
    """A worker that ended by itself; its job, if it had one, runs again once."""

    key: str | None
    what: str
    worker: str


Event = Reported | Finished | Failed | WorkerLost
Watch = Callable[[Event], None]


class Executor(Protocol):
    """Runs jobs. A context: on exit all its workers have ended."""

    @property
    def name(self) -> str: ...

    jobs: int
    """How many run at a time."""

    @property
    def startup_s(self) -> float:
        """Seconds until the workers were ready, as far as known."""
        ...

    def submit(self, job: Job) -> None:
        """Run it once a worker is free, in the order of submission."""
        ...

    def run(self, watch: Watch, idle: Callable[[], None] | None = None) -> None:
        """Call `watch` with each event as it comes, until every submitted job is finished, failed
        or cancelled; `watch` may submit and cancel jobs. Ctrl-C or SIGTERM drops jobs that wait
        and interrupts the ones that run, whose ends are events of the next seconds; it cancels the
        ones that do not end. `idle` is called between events, where jobs are in other processes
        at least every second.

        Raises ExecutorLostError, WorkerVersionError, KeyboardInterrupt.
        """
        ...

    def cancel(self, key: str) -> None:
        """Drop a waiting job, stop a running one; it has no more events."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; a job that raises KeyboardInterrupt by itself has failed."""


# -- errors ----------------------------------------------------------------------------------------


class ExecutorError(KernelError):
    """An executor that cannot be used."""


class AddressError(ExecutorError, OptionError):
    """An address that is not that of a cluster, or one without Ray."""


class ExecutorLostError(ExecutorError):
    """The cluster, or every worker, is gone."""


class WorkerVersionError(ExecutorError):
    """A worker that runs another version."""
