"""A process of a pool: reads jobs from a socket, whose end is the end of it and of its children.

On Linux the end of its stdin is their end too, which needs no thread of Python: a job may never
release the interpreter.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
import threading
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from neuroncore.executors.execution import execute, release
from neuroncore.executors.protocol import Job, Limits, Reported
from neuroncore.executors.workers import Ready


def main(number: str, preload: str) -> None:
    """Report the release, then execute jobs until the connection ends."""
    _end_with_stdin()
    connection = Connection(int(number))
    jobs: SimpleQueue[tuple[Job, Limits]] = SimpleQueue()
    threading.Thread(target=_read, args=(connection, jobs), daemon=True).start()
    if preload:
        import_module(preload)
    connection.send(Ready(release()))
    while True:
        job, limits = jobs.get()

        def report(value: Any, key: str = job.key) -> None:
            connection.send(Reported(key, value, ""))

        connection.send(execute(job, limits, report, ""))


def _end_with_stdin() -> None:
    """Let the system end this process group when the driver is gone; it writes nothing there."""
    driver, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    if sys.platform == "linux":
        fcntl.fcntl(driver, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(driver, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(driver, fcntl.F_SETFL, os.O_ASYNC)
        if select.select([driver], [], [], 0)[0]:  # it was gone before
            os.killpg(0, signal.SIGKILL)


def _read(connection: Connection, jobs: SimpleQueue[tuple[Job, Limits]]) -> None:
    try:
        while True:
            jobs.put(connection.recv())
    except (EOFError, OSError):
        with suppress(OSError):  # a process whose supervisor was killed may send no signals
            os.killpg(0, signal.SIGKILL)
        os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
