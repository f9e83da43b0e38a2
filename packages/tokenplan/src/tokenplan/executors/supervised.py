"""A process that goes on below a supervisor, a process without code of users.

The supervisor ends with it, ends it when the driver is gone, and ends all that it has started: on
Linux also processes in sessions of their own, except where the supervisor itself is killed.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import Any, NoReturn

from neuroncore.confinement.process import (
    die_with_parent,
    ended_with_children,
    set_limit,
    set_subreaper,
)
from tokenplan.executors.protocol import ExecutorError


def start_supervised(
    function: str, *words: str, variables: Mapping[str, str], **settings: Any
) -> subprocess.Popen[bytes]:
    """A process of this Python with a function (MODULE:FUNCTION) that calls `go_on_supervised`;
    when its stdin is closed, it and all below it end.

    settings: of `subprocess.Popen`.

    Raises ExecutorError where no process can be started.
    """
    module, _, name = function.partition(":")
    code = f"import sys; from {module} import {name}; {name}(*sys.argv[1:])"
    path = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    try:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", code, *words], env={**variables, "PYTHONPATH": path},
            stdin=subprocess.PIPE, start_new_session=True, **settings,
        )  # fmt: skip
    except OSError as wrong:
        raise ExecutorError("a worker cannot be started", got=wrong.strerror) from None


def go_on_supervised(*closed: int, at_end: Callable[[], object] = bool) -> None:
    """Return in a child without stdin; this process supervises it, without the files `closed`, and
    calls `at_end` when all below it has ended.
    """
    supervisor = os.getpid()
    if pid := os.fork():
        for file in closed:
            os.close(file)
        _supervise(pid, at_end)
    if sys.platform == "linux":
        die_with_parent(supervisor)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # of a driver that ignores it, too
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def _supervise(pid: int, at_end: Callable[[], object]) -> NoReturn:
    """Pass on interrupts until the process ends, then end as it did."""
    if sys.platform == "linux":
        set_subreaper()
    signal.signal(signal.SIGINT, lambda *_: os.kill(pid, signal.SIGINT))
    driver = Thread(target=_kill_after_driver, args=(pid, ends := Lock()), daemon=True)
    driver.start()
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ends.acquire()  # what is reaped is signalled no more
    code = ended_with_children(pid)
    at_end()
    if code < 0:
        set_limit(resource.RLIMIT_CORE, 0)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
        with suppress(OSError):  # SIGKILL has no handler
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _kill_after_driver(pid: int, ends: Lock) -> None:
    """Stdin is a pipe that ends with the driver, or when that closes it."""
    os.read(0, 1)
    with ends:
        os.kill(pid, signal.SIGKILL)
