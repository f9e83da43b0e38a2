"""A process of a pool: reads jobs from a socket, whose end is the end of it and of its children."""

from __future__ import annotations

import os
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
