"""A process that imports what every job needs once, and forks a child for each job.

Run as `python -m nki_migrate.verify.fork_server`. A request is a line of JSON on stdin,
`[FOLDER, MEBIBYTES]`; the answers are `[FOLDER, "began", PID]`, `[FOLDER, "tried", TEXT]` for what
the job may not do, and `[FOLDER, "ended", STATUS]` on stdout, where a status is a return code as
`subprocess` has it. Every job ends with stdin.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from neuroncore.confinement.process import confine, die_with_parent
from neuroncore.confinement.seccomp import Supervisor
from nki_migrate.verify.child import limit_memory, main, preload
from nki_migrate.verify.guard import read_attempts
from nki_migrate.verify.job import read_job

LOG = "log.txt"


class _Server:
    def __init__(self) -> None:
        self._answers = os.dup(1)
        os.dup2(2, 1)  # what an import prints is not an answer
        self._folders: dict[int, str] = {}
        self._supervisors: dict[int, Supervisor] = {}
        self._attempts: dict[int, int] = {}
        """Pipes by job: what its guard has written there it cannot take back."""
        self._wake, self._wakened = os.pipe()
        os.set_blocking(self._wakened, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakened)

    def serve(self) -> None:
        """Answer requests until stdin is closed; then kill the jobs that run."""
        rest = b""
        while True:
            watched = {
                s.descriptor: pid for pid, s in self._supervisors.items() if s.descriptor >= 0
            }
            ready, _, _ = select.select([0, self._wake, *watched], [], [])
            for descriptor in watched.keys() & {*ready}:
                self._attend(watched[descriptor])
            if self._wake in ready:
                os.read(self._wake, 4096)
                self._reap()
            if 0 in ready:
                received = os.read(0, 1 << 16)
                if not received:
                    break
                *lines, rest = (rest + received).split(b"\n")
                for line in lines:
                    self._fork(*json.loads(line))
        for pid in self._folders:
            _kill_group(pid)

    def _fork(self, folder: str, mebibytes: int) -> None:
        preload(read_job(Path(folder)))
        gc.freeze()
        server = os.getpid()
        ours, theirs = socket.socketpair()
        attempts, guard = os.pipe()
        for end in (attempts, guard):
            os.set_blocking(end, False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of BLAS survive a fork
            pid = os.fork()
        if not pid:
            ours.close()
            os.close(attempts)
            self._become_job(folder, mebibytes, server, theirs, guard)
        theirs.close()
        os.close(guard)
        self._attempts[pid] = attempts
        self._supervisors[pid] = Supervisor([Path(folder)], pid, ours)
        with suppress(PermissionError, ProcessLookupError):  # it has done so itself, or is gone
            os.setpgid(pid, pid)
        self._folders[pid] = folder
        self._answer(folder, "began", pid)

    def _attend(self, pid: int) -> None:
        """Decide what a job waits for."""
        attempt = self._supervisors[pid].attend()
        if attempt:
            self._answer(self._folders[pid], "tried", attempt)

    def _become_job(
        self, folder: str, mebibytes: int, server: int, to_supervisor: socket.socket, guard: int
    ) -> None:
        status = 1
        try:
            die_with_parent(server)
            os.setpgid(0, 0)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for descriptor in (
                self._answers, self._wake, self._wakened, *self._attempts.values()
            ):  # fmt: skip
                os.close(descriptor)
            for other in self._supervisors.values():
                other.close()
            _redirect(Path(folder))
            limit_memory(mebibytes)
            confine([Path(folder)], to_supervisor)
            status = main(Path(folder), guard)
        finally:
            os._exit(status)

    def _reap(self) -> None:
        """Report the jobs that have ended, and end what they started."""
        while self._folders:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
            if ended is None:
                return
            _kill_group(ended.si_pid)  # before its number is free for another process
            _, status = os.waitpid(ended.si_pid, 0)
            folder = self._folders.pop(ended.si_pid)
            self._report_attempts(folder, self._attempts.pop(ended.si_pid))
            self._supervisors.pop(ended.si_pid).close()
            self._answer(folder, "ended", os.waitstatus_to_exitcode(status))

    def _report_attempts(self, folder: str, attempts: int) -> None:
        """Report what the guard of a job that has ended has written."""
        with os.fdopen(attempts, "rb", buffering=0) as pipe:
            for attempt in read_attempts(pipe.readall() or b""):
                self._answer(folder, "tried", attempt)

    def _answer(self, *answer: Any) -> None:
        os.write(self._answers, json.dumps(answer).encode() + b"\n")


def _redirect(folder: Path) -> None:
    """Read nothing; write to the log of the folder."""
    log = os.open(folder / LOG, os.O_WRONLY | os.O_CREAT)
    for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (log, 1), (log, 2)):
        os.dup2(source, target)


def _kill_group(pid: int) -> None:
    for end in (os.killpg, os.kill):  # a job can leave its group
        with suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


if __name__ == "__main__":
    _Server().serve()
