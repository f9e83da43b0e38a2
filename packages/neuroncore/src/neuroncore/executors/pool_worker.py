"""A process of a pool: reads jobs from a socket.

It is the child of a supervisor, a process without code of users, which ends with it, ends it when
the driver is gone, and ends all that it has started: on Linux also processes in sessions of their
own, except where the supervisor itself is killed.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from threading import Lock, Thread
from typing import Any, NoReturn

from neuroncore.confinement.process import (
    die_with_parent,
    ended_with_children,
    set_limit,
    set_subreaper,
)
from neuroncore.executors.execution import execute_to_send, release
from neuroncore.executors.protocol import Job, Limits, Reported
from neuroncore.executors.workers import Ready


def main(number: str, preload: str) -> None:
    """Report the release, then execute jobs until the connection ends."""
    supervisor = os.getpid()
    if pid := os.fork():
        _supervise(pid, int(number))
    if sys.platform == "linux":
        die_with_parent(supervisor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    connection = Connection(int(number))
    if preload:
        import_module(preload)
    connection.send(Ready(release()))
    while True:
        job, limits = _received(connection)

        def report(value: Any, key: str = job.key) -> None:
            connection.send(Reported(key, value, ""))

        connection.send_bytes(execute_to_send(job, limits, report))


def _received(connection: Connection) -> tuple[Job, Limits]:
    try:
        return connection.recv()
    except (EOFError, OSError):
        os._exit(0)


def _supervise(pid: int, connection: int) -> NoReturn:
    """Pass on interrupts until the process ends, then end as it did."""
    if sys.platform == "linux":
        set_subreaper()
    signal.signal(signal.SIGINT, lambda *_: os.kill(pid, signal.SIGINT))
    os.close(connection)
    driver = Thread(target=_kill_after_driver, args=(pid, ends := Lock()), daemon=True)
    driver.start()
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ends.acquire()  # what is reaped is signalled no more
    code = ended_with_children(pid)
    if code < 0:
        set_limit(resource.RLIMIT_CORE, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _kill_after_driver(pid: int, ends: Lock) -> None:
    """The driver writes nothing to stdin, which it closes, or which ends with it."""
    os.read(0, 1)
    with ends:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
