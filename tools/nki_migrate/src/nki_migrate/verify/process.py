"""Child processes with a wall clock, a memory limit, few variables and a process group each.

What else holds them is `confinement` on Linux and `guard` everywhere.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

from neuroncore.confinement.environment import allowed_environment
from neuroncore.confinement.signal_names import signal_name
from nki_migrate.verify.job import Job, Outcome, read_result
from nki_migrate.verify.untrusted import read_regular

DEFAULT_SECONDS = 300.0
DEFAULT_MEBIBYTES = 8192
FORKS = sys.platform == "linux"
"""Whether children are forked from a server: elsewhere libraries do not survive a fork."""

_MOST_ATTEMPTS = 100
Progress = Callable[[str], None]
"""Shows how far the work is, on a terminal."""


def no_progress(text: str) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Wall-clock seconds and MiB of address space of one child.

    The memory limit is RLIMIT_AS, set by the child on itself; where the system has none
    (Windows) or does not honour it (macOS), only the clock holds.
    """

    seconds: float = DEFAULT_SECONDS
    mebibytes: int = DEFAULT_MEBIBYTES


class Children:
    """The children that are running now, so that an interruption ends all of them.

    A context manager: at its end the server that forks the children ends, too.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._running: set[_Process] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._server: _ForkServer | None = None

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, job: Job) -> Outcome:
        """Run a job to its end or to its limit. Never raises for what the user's code did."""
        with tempfile.TemporaryDirectory(prefix="nki-verify-") as name:
            folder = Path(name)
            job.write(folder)
            process = self._start(folder)
            try:
                process.wait(self.limits.seconds)
            except subprocess.TimeoutExpired:
                timed_out = True
            else:
                timed_out = False
            finally:
                self._end(process)
            tried = process.tried if isinstance(process, Forked) else ()
            outcome = read_result(folder).having_tried(tried)
            if timed_out:
                return outcome.but(
                    f"stopped after {self.limits.seconds:g} s; --timeout allows more"
                )
            judged = _judged(outcome, process.returncode, folder / "log.txt")
            if judged.error is None and len(judged.results) < len(job.variants):
                return judged.but("the process ended without giving all its results")
            return judged

    def _start(self, folder: Path) -> _Process:
        with self._lock:
            if self._closed:
                raise KeyboardInterrupt
            if FORKS and self._server is None:
                self._server = _ForkServer()
                weakref.finalize(self, self._server.close)
            size = self.limits.mebibytes
            process = self._server.start(folder, size) if self._server else _spawned(folder, size)
            self._running.add(process)
            return process

    def _end(self, process: _Process) -> None:
        """Kill the rest of the child's process group, and reap the child."""
        _kill_group(process)
        process.wait()
        with self._lock:
            self._running.discard(process)

    def close(self) -> None:
        """End every child and start no other; `run` in other threads then returns or raises."""
        with self._lock:
            self._closed = True
            running = list(self._running)
        for process in running:
            _kill_group(process)
        if self._server is not None:
            self._server.close()


# -- forked children


@dataclass(slots=True, eq=False)
class Forked:
    """A job that the server forks; what `Children` uses of `subprocess.Popen`."""

    pid: int = 0
    returncode: int | None = None
    began: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    tried: list[str] = field(default_factory=list)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for the end; the time until the job begins does not count."""
        self.began.wait()
        if not self.ended.wait(timeout):
            raise subprocess.TimeoutExpired("job", timeout or 0.0)


class _ForkServer:
    """A process of `nki_migrate.verify.fork_server`, and the jobs it has not reported as ended."""

    def __init__(self) -> None:
        self._jobs: dict[str, Forked] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "nki_migrate.verify.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=allowed_environment(os.environ),
        )
        assert self._process.stdout is not None
        self._reader = threading.Thread(
            target=_read_answers, args=(self._process.stdout, self._jobs), daemon=True
        )
        self._reader.start()

    def start(self, folder: Path, mebibytes: int) -> Forked:
        job = self._jobs[str(folder)] = Forked()
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the server has died: the reader says so of every job
            self._process.stdin.write(json.dumps([str(folder), mebibytes]).encode() + b"\n")
            self._process.stdin.flush()
        if not self._reader.is_alive():
            _report(job, "ended", -signal.SIGKILL)
        return job

    def close(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.wait()
        self._reader.join()


def _read_answers(answers: IO[bytes], jobs: dict[str, Forked]) -> None:
    """Pass the server's answers to its jobs; the ones that remain at its end died with it."""
    with answers:
        for line in answers:
            folder, event, number = json.loads(line)
            if event == "tried":
                note_attempt(jobs[folder].tried, number)
            else:
                _report(jobs[folder] if event == "began" else jobs.pop(folder), event, number)
    for job in list(jobs.values()):
        _report(job, "ended", -signal.SIGKILL)


def note_attempt(tried: list[str], text: str) -> None:
    """Add what a job tried, each once and not without end."""
    if text not in tried and len(tried) < _MOST_ATTEMPTS:
        tried.append(text)


def _report(job: Forked, event: str, number: int) -> None:
    if event == "began":
        job.pid = number
    else:
        job.returncode = number
        job.ended.set()
    job.began.set()


# -- spawned children


def _spawned(folder: Path, mebibytes: int) -> subprocess.Popen[bytes]:
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, str(mebibytes), str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=allowed_environment(os.environ),
        )


_BOOT = """
import os
import sys
from pathlib import Path
from nki_migrate.verify.child import limit_memory, main, preload
from nki_migrate.verify.job import ATTEMPTS, read_job
folder = Path(sys.argv[2])
limit_memory(int(sys.argv[1]))
preload(read_job(folder))
sys.exit(main(folder, os.open(folder / ATTEMPTS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)))
"""

_Process = Forked | subprocess.Popen[bytes]


def _kill_group(process: _Process) -> None:
    if isinstance(process, Forked) and process.returncode is not None:
        return  # the server has ended the group
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            os.kill(process.pid, signal.SIGTERM)


def _judged(outcome: Outcome, returncode: int | None, log: Path) -> Outcome:
    """Say what happened to a child that did not say so itself."""
    if returncode == 0 or outcome.error:
        return outcome
    if returncode is not None and returncode < 0:
        name = signal_name(-returncode)
        return outcome.but(f"the process died of {name}")
    return outcome.but(f"exit code {returncode}: {_last_line(log) or 'no message'}")


def _last_line(log: Path) -> str:
    with suppress(OSError, ValueError):  # the code that ran can write there
        lines = read_regular(log, 1 << 16).decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""
    return ""
