"""A process of a pool: reads jobs from a socket, below a supervisor."""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

from neuroncore.commands.interruption import uninterrupted
from tokenplan.executors.execution import execute_to_send, release
from tokenplan.executors.protocol import Job, Limits, Reported
from tokenplan.executors.supervised import go_on_supervised
from tokenplan.executors.workers import Ready


def main(number: str, preload: str) -> None:
    """Report the release, then execute jobs until the connection ends."""
    go_on_supervised(int(number))
    connection = Connection(int(number))
    if preload:
        import_module(preload)
    connection.send(Ready(release()))
    while True:
        job, limits = _received(connection)

        def report(value: Any, key: str = job.key) -> None:
            with uninterrupted():  # the driver reads whole messages
                connection.send(Reported(key, value, ""))

        ended = execute_to_send(job, limits, report)
        with suppress(KeyboardInterrupt), uninterrupted():
            connection.send_bytes(ended)


def _received(connection: Connection) -> tuple[Job, Limits]:
    try:
        return connection.recv()
    except (EOFError, OSError):
        os._exit(0)
