"""A job in the process that it runs in: limits, errors and their log as data."""

from __future__ import annotations

import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from math import isinf
from pathlib import Path
from typing import Any

from neuroncore.commands.folders import same_folder
from neuroncore.commands.function import find_function, parse_name
from neuroncore.commands.user_folder import in_its_folder
from neuroncore.errors import KernelError
from neuroncore.source_location import OUR_PACKAGES
from tokenplan.executors.protocol import (
    LOST_LIMIT,
    Failed,
    Finished,
    Interrupted,
    Job,
    Limits,
    Report,
)


@cache
def release() -> str:
    """The version and sources of this project's packages in this process, whichever are installed;
    workers of one run have equal ones.
    """
    digest = sha256()
    for folder in _folders():
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    return f"neuroncore {version('neuroncore')}, {python}, sources {digest.hexdigest()[:8]}"


def _folders() -> Iterator[Path]:
    for name in sorted(OUR_PACKAGES):
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            yield Path(spec.submodule_search_locations[0])


def execute(job: Job, limits: Limits, report: Report, worker: str) -> Finished | Failed:
    """Run a job in this process, under its limit of memory. A process that it forks ends where it
    would report or return.
    """
    began, process = time.monotonic(), os.getpid()

    def report_here(value: Any) -> None:
        _end_unless(process)
        report(value)

    try:
        with same_folder(), _memory_limit(limits.num_bytes):
            value = _function(job.function)(job.payload, report_here)
        return Finished(job.key, value, worker, time.monotonic() - began)
    except (Interrupted, TimeSpent):
        raise
    except BaseException as wrong:  # what a job raises is its own
        return _failed(job, wrong, limits, worker, time.monotonic() - began)
    finally:
        _end_unless(process)


def _end_unless(process: int) -> None:
    if os.getpid() != process:
        os._exit(0)


def execute_to_send(job: Job, limits: Limits, report: Report) -> bytes:
    """The same, pickled for a driver; a value for which that fails is an error of the job."""
    ended = execute(job, limits, report, "")
    try:
        return pickle.dumps(ended)
    except Exception as wrong:
        return pickle.dumps(_failed(job, wrong, limits, "", ended.seconds))


def _failed(job: Job, wrong: BaseException, limits: Limits, worker: str, seconds: float) -> Failed:
    if isinstance(wrong, KernelError) and wrong.place == KernelError("").place:
        wrong.place = None  # the worker itself: not a line of the user's
    log = "".join(traceback.format_exception(wrong))
    if isinstance(wrong, MemoryError):
        what = f"exceeds {limits.num_bytes / 2**20:,.0f} MiB"
        return Failed(job.key, "memory", what, log, worker, seconds)
    try:
        what = str(wrong)
    except Exception:
        what = "<exception str() failed>"  # as in a traceback
    return Failed(job.key, "error", f"{type(wrong).__name__}: {what}", log, worker, seconds)


@cache
def _function(name: str) -> Callable[[Any, Report], Any]:
    return in_its_folder(lambda: find_function(parse_name(name)))


@contextmanager
def _memory_limit(num_bytes: float) -> Iterator[None]:
    """Limit the address space to what the process has and `num_bytes` more, where the system
    supports it.
    """
    if isinf(num_bytes):
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = _address_space() + int(num_bytes)
    is_lower = before[1] == resource.RLIM_INFINITY or limit < before[1]
    resource.setrlimit(resource.RLIMIT_AS, (limit if is_lower else before[1], before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _address_space() -> int:
    import resource

    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[0]) * resource.getpagesize() if statm.exists() else 0


class TimeSpent(BaseException):
    """The limit of a job in this process is reached."""


def time_expired(job: Job, limits: Limits, worker: str, log: str = "") -> Failed:
    """A job that was stopped at its limit."""
    what = f"stopped after {limits.seconds:g} s, its limit"
    return Failed(job.key, "time", what, log, worker, limits.seconds)


def poisoned(job: Job, what: str, worker: str, log: str) -> Failed:
    """A job that is not run again."""
    return Failed(job.key, "poisoned", f"ended {LOST_LIMIT} workers: {what}", log, worker, 0.0)
