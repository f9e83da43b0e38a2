"""Child processes with a wall clock, a memory limit and a process group of their own.

The limits hold the user's code, not an attacker: the child runs with the user's rights.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from nki_migrate.verify.job import Job, Outcome, read_result

DEFAULT_SECONDS = 300.0
DEFAULT_MEBIBYTES = 8192


@dataclass(frozen=True, slots=True)
class Limits:
    """Wall-clock seconds and MiB of address space of one child.

    The memory limit is RLIMIT_AS, set by the child on itself; where the system has none
    (Windows) or does not honour it (macOS), only the clock holds.
    """

    seconds: float = DEFAULT_SECONDS
    mebibytes: int = DEFAULT_MEBIBYTES


@dataclass(slots=True)
class Children:
    """The children that are running now, so that an interruption ends all of them."""

    limits: Limits = field(default_factory=Limits)
    _running: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def run(self, job: Job) -> Outcome:
        """Run a job to its end or to its limit. Never raises for what the user's code did."""
        with tempfile.TemporaryDirectory(prefix="nki-verify-") as name:
            folder = Path(name)
            job.write(folder)
            with (folder / "log.txt").open("wb") as log:
                process = self._start(folder, log.fileno())
                try:
                    process.wait(self.limits.seconds)
                except subprocess.TimeoutExpired:
                    timed_out = True
                else:
                    timed_out = False
                finally:
                    self._end(process)
            outcome = read_result(folder)
            if timed_out:
                return outcome.but(
                    f"stopped after {self.limits.seconds:g} s; --timeout allows more"
                )
            judged = _judged(outcome, process.returncode, folder / "log.txt")
            if judged.error is None and len(judged.results) < len(job.variants):
                return judged.but("the process ended without giving all its results")
            return judged

    def _start(self, folder: Path, log: int) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _BOOT, str(self.limits.mebibytes), str(folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            )
            self._running.add(process)
            return process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
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


# The limit is set before anything of the kernel is imported, and in the child itself: a
# `preexec_fn` is not safe once the parent has threads.
_BOOT = """
import sys
try:
    import resource
    size = int(sys.argv[1]) << 20
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
except (ImportError, ValueError, OSError):
    pass
from pathlib import Path
from nki_migrate.verify.child import main
sys.exit(main(Path(sys.argv[2])))
"""


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        elif process.poll() is None:
            process.kill()


def _judged(outcome: Outcome, returncode: int, log: Path) -> Outcome:
    """Say what happened to a child that did not say so itself."""
    if returncode == 0 or outcome.error:
        return outcome
    if returncode < 0:
        name = signal.Signals(-returncode).name
        return outcome.but(f"the process died of {name}")
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return outcome.but(f"exit code {returncode}: {lines[-1] if lines else 'no message'}")
