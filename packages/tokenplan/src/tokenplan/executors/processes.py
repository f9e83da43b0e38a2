"""A pool of processes on this machine (`pool_worker`), each in a process group of its own.

A process that a job has started ends with the worker, on Linux also in a session of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from typing import IO, NamedTuple

from neuroncore.confinement.signal_names import signal_name
from tokenplan.executors.messages import MessageError, read_message
from tokenplan.executors.protocol import ExecutorError, Job, Limits
from tokenplan.executors.supervised import start_supervised
from tokenplan.executors.workers import Gone, Message, WorkerExecutor

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""One core per worker, unless the environment has another number."""
ENDING_S = 5.0
"""How long a process that has closed its connection may take to end."""
READ_BYTES, LOG_BYTES = 1 << 20, 1 << 14
"""At a time of messages; of the end of a worker's log."""
WORKER = "tokenplan.executors.pool_worker:main"


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
    log: IO[bytes]
    """What its job has printed."""
    received: bytearray
    """The beginning of a message."""


class _Processes:
    """The fleet of a pool."""

    def __init__(self, preload: str, environments: list[Mapping[str, str]]) -> None:
        self._preload, self._free = preload, environments

    def start(self, number: int) -> _Process:
        ours, theirs = socket.socketpair()
        variables = self._free.pop(0) if self._free else {}
        environment = dict.fromkeys(THREADS, "1") | dict(os.environ) | dict(variables)
        environment["PYTHONUNBUFFERED"] = "1"  # the log of a process that is killed is complete
        log = tempfile.TemporaryFile("a+b")  # noqa: SIM115
        try:
            process = start_supervised(
                WORKER, str(theirs.fileno()), self._preload, variables=environment,
                pass_fds=[theirs.fileno()], stdout=log, stderr=log,
            )  # fmt: skip
        except ExecutorError:
            ours.close()
            log.close()
            raise
        finally:
            theirs.close()
        return _Process(process, Connection(ours.detach()), variables, log, bytearray())

    def open(self, jobs: int) -> None:
        """Processes are started one by one."""

    def send(self, worker: _Process, job: Job, limits: Limits) -> None:
        worker.log.truncate(0)
        with contextlib.suppress(OSError):  # a worker that is gone is heard of by `receive`
            worker.connection.send((job, limits))

    def interrupt(self, worker: _Process) -> bool:
        with contextlib.suppress(OSError):
            os.kill(worker.process.pid, signal.SIGINT)
        return True

    def log(self, worker: _Process) -> str:
        size = worker.log.seek(0, os.SEEK_END)
        worker.log.seek(max(0, size - LOG_BYTES))
        return worker.log.read().decode(errors="replace")

    def stop(self, worker: _Process) -> None:
        assert worker.process.stdin is not None
        worker.log.close()
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
            for message in _messages(worker):
                yield worker, message

    def close(self) -> None:
        """Processes are stopped one by one."""


def _messages(worker: _Process) -> Iterator[Message]:
    """The ones that are there, without waiting for the rest of one: its job has a limit."""
    got = b""
    with contextlib.suppress(OSError):
        got = os.read(worker.connection.fileno(), READ_BYTES)
    if not got:
        yield Gone(_ending(worker.process))
        return
    worker.received.extend(got)
    try:
        messages = [read_message(sent) for sent in _complete(worker.received)]
    except MessageError as wrong:
        messages = [Gone(str(wrong))]
    yield from messages


def _complete(received: bytearray) -> Iterator[bytes]:
    """Take complete messages, each behind its size as `Connection.send_bytes` has it."""
    while len(received) >= _SHORT.size:
        begin, (size,) = _SHORT.size, _SHORT.unpack_from(received)
        if size == -1 and len(received) >= begin + _LONG.size:
            (size,) = _LONG.unpack_from(received, begin)
            begin += _LONG.size
        if size < 0 or len(received) < begin + size:
            return
        sent = bytes(received[begin : begin + size])
        del received[: begin + size]
        yield sent


_SHORT, _LONG = struct.Struct("!i"), struct.Struct("!Q")


def _ending(process: subprocess.Popen[bytes]) -> str:
    """Why a process has ended. It stays until `stop`: what is reaped no longer names its group."""
    deadline = time.monotonic() + ENDING_S
    while time.monotonic() < deadline:
        found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if found is not None and found.si_code == os.CLD_EXITED:
            return f"ended with exit code {found.si_status}"
        if found is not None:
            return f"killed by {signal_name(found.si_status)}"
        time.sleep(ENDING_S / 500)
    return "its connection was closed"
