"""A pool of processes on this machine (`pool_worker`), each in a process group of its own.

A process that a job has started ends with the worker, on Linux also in a session of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import NamedTuple

from neuroncore.executors.messages import MessageError, read_message
from neuroncore.executors.protocol import ExecutorError, Job, Limits
from neuroncore.executors.workers import Gone, Message, WorkerExecutor

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""One core per worker, unless the environment has another number."""
ENDING_S = 5.0
"""How long a process that has closed its connection may take to end."""
MODULE = "neuroncore.executors.pool_worker"


def pool(
    jobs: int, limits: Limits | None = None, preload: str = "",
    environments: Sequence[Mapping[str, str]] = (),
) -> WorkerExecutor:  # fmt: skip
    """An executor of `jobs` processes that import the module `preload` before they are ready.

    environments: variables of each process at a time; one that is replaced leaves its to the next.
    """
    fleet = _Processes(preload, list(environments))
    return WorkerExecutor("pool", fleet, jobs, limits or Limits())


class _Process(NamedTuple):
    process: subprocess.Popen[bytes]
    connection: Connection
    variables: Mapping[str, str]


class _Processes:
    """The fleet of a pool."""

    def __init__(self, preload: str, environments: list[Mapping[str, str]]) -> None:
        self._preload, self._free = preload, environments

    def start(self, number: int) -> _Process:
        ours, theirs = socket.socketpair()
        variables = self._free.pop(0) if self._free else {}
        environment = dict.fromkeys(THREADS, "1") | dict(os.environ) | dict(variables)
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
        command = [sys.executable, "-m", MODULE, str(theirs.fileno()), self._preload]
        try:
            process = subprocess.Popen(
                command, env=environment, pass_fds=[theirs.fileno()], start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as wrong:
            ours.close()
            raise ExecutorError("a worker cannot be started", got=str(wrong)) from None
        finally:
            theirs.close()
        return _Process(process, Connection(ours.detach()), variables)

    def open(self, jobs: int) -> None:
        """Processes are started one by one."""

    def send(self, worker: _Process, job: Job, limits: Limits) -> None:
        with contextlib.suppress(OSError):  # a worker that is gone is heard of by `receive`
            worker.connection.send((job, limits))

    def interrupt(self, worker: _Process) -> bool:
        with contextlib.suppress(OSError):
            os.kill(worker.process.pid, signal.SIGINT)
        return True

    def stop(self, worker: _Process) -> None:
        assert worker.process.stdin is not None
        worker.process.stdin.close()
        worker.connection.close()
        _ending(worker.process)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.process.pid, signal.SIGKILL)  # what its supervisor has not ended
        worker.process.wait()
        self._free.append(worker.variables)

    def receive(
        self, workers: list[_Process], timeout_s: float
    ) -> Iterator[tuple[_Process, Message]]:
        by_connection = {worker.connection: worker for worker in workers}
        for connection in wait(list(by_connection), timeout_s):
            worker = by_connection[connection]  # pyrefly: ignore
            yield worker, _message(worker)

    def close(self) -> None:
        """Processes are stopped one by one."""


def _message(worker: _Process) -> Message:
    try:
        return read_message(worker.connection.recv_bytes())
    except MessageError as wrong:
        return Gone(str(wrong))
    except (EOFError, OSError):
        return Gone(_ending(worker.process))


def _ending(process: subprocess.Popen[bytes]) -> str:
    """Why a process has ended. It stays until `stop`: what is reaped no longer names its group."""
    deadline = time.monotonic() + ENDING_S
    while time.monotonic() < deadline:
        found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if found is not None and found.si_code == os.CLD_EXITED:
            return f"ended with exit code {found.si_status}"
        if found is not None:
            return f"killed by {signal.Signals(found.si_status).name}"
        time.sleep(ENDING_S / 500)
    return "its connection was closed"
