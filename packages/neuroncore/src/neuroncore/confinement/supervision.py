"""A command that goes on in a confined child process, on the same terminal.

The process that was started forks a supervisor, which forks the child. The supervisor decides the
watched calls of the child and ends what the child has started; both pass on signals and end with
the child's exit code. What the child has started ends also where either of them is killed: the
other one ends it.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import NoReturn

from neuroncore.confinement.environment import limit_environment
from neuroncore.confinement.process import (
    confine,
    die_with_parent,
    ended_with_children,
    set_limit,
    set_subreaper,
    standard_outputs,
)
from neuroncore.confinement.seccomp import Supervisor
from neuroncore.confinement.signal_names import signal_name
from neuroncore.confinement.system_calls import MOST_PROCESSES

CONFINED = "NKI_CONFINED"
"""Set inside: a command that the program starts is confined with it."""
_SHARED_MEMORY = Path("/dev/shm")
FILE_BYTES = 16 << 30
MAPPED_BYTES = 8 << 30
"""Of shared memory, libraries and reserved addresses, beyond a limit of memory."""
_CACHES = "__pycache__"
_MOST_ATTEMPTS = 20
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_EXPECTED_SIGNALS = (*_PASSED_ON, signal.SIGPIPE, signal.SIGSYS)
"""Of the user, of a reader that has left, of the filter of system calls."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Permissions of a program: folders to write beneath, seconds, memory."""

    folders: Sequence[Path]
    seconds: float = inf
    mebibytes: int = 0
    """0: what the machine has."""
    variables: Sequence[str] = ()
    """Environment variables besides the usual ones."""


Ended = Callable[[int, Sequence[str]], int]
"""What is done last: from the exit code and the reasons of its supervisor to the exit code."""


def confine_command(
    parser: argparse.ArgumentParser, given: argparse.Namespace, ended: Ended | None = None
) -> bool:
    """Go on in a process that may write beneath the working folder, folders of temporary files
    and the folders that options name, and use no network, unless `--unconfined` is given.

    This changes nothing under a debugger, inside a confined process, and elsewhere than on Linux.
    Whether it did; `ended` is then called by a process that survives the child.
    """
    if given.unconfined or not is_supported():
        return False
    seconds = given.timeout or (inf if sys.stdin and sys.stdin.isatty() else given.default_seconds)
    allowed = Allowed([*_folders(given)], seconds, given.memory, given.env)
    go_on_confined(parser.prog, allowed, ended or (lambda code, reasons: code))
    return True


def _folders(given: argparse.Namespace) -> Iterator[Path]:
    found = [Path.cwd(), Path(tempfile.gettempdir()), _SHARED_MEMORY]
    found += [value for value in vars(given).values() if isinstance(value, Path)]
    for path in dict.fromkeys(path.absolute() for path in found):
        if (folder := path if path.is_dir() else path.parent).is_dir():
            yield folder


def is_supported() -> bool:
    """Whether this process can go on in a confined one: not beneath a debugger or another one."""
    free = sys.gettrace() is None and CONFINED not in os.environ
    return free and sys.platform == "linux"


def go_on_confined(command: str, allowed: Allowed, ended: Ended) -> None:
    """Return in a child that is confined; this process itself ends with the exit code of `ended`,
    of the child's."""
    sys.stdout.flush()
    sys.stderr.flush()
    limit_environment(command, allowed.variables)  # before a fork: parents have it in memory, too
    os.environ[CONFINED] = "1"
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    command_process = os.pidfd_open(os.getpid())
    if supervisor := _forked():
        _exit(*_end_of_supervisor(supervisor), ended)
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    if pid := _forked():
        theirs.close()
        attempts = Supervisor(
            allowed.folders, pid, ours, _CACHES, processes=True, devices=standard_outputs()
        )
        supervision = _Supervision(command, pid, attempts, allowed.seconds, command_process)
        _exit(*supervision.end(), ended)
    ours.close()
    os.close(command_process)
    die_with_parent(parent)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    _limit(allowed.mebibytes)
    confine(allowed.folders, theirs, FILE_BYTES, processes=True, devices=standard_outputs())


def _exit(code: int, reasons: Sequence[str] | None, ended: Ended) -> NoReturn:
    """End this process. Without reasons, the other one has called `ended`."""
    try:
        code = code if reasons is None else ended(code, reasons)
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        code = code or 1
    os._exit(code)


def _forked() -> int:
    """0 in the child. What the child has started is this process's when the child ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of BLAS survive a fork
        pid = os.fork()
    if pid:
        set_subreaper()
    return pid


def _end_of_supervisor(pid: int) -> tuple[int, list[str] | None]:
    """Pass on signals until the supervisor ends; its exit code, and why it had none itself."""
    threading.Thread(target=_pass_on_signals, args=(os.pidfd_open(pid),), daemon=True).start()
    code = ended_with_children(pid)
    if code >= 0:
        return code, None
    return 128 - code, [f"its supervisor was ended by {signal_name(-code)}"]


def _pass_on_signals(child: int) -> None:
    """Signals of other processes; the terminal's reach the child by themselves."""
    while True:
        received = signal.sigwaitinfo(_PASSED_ON)
        if received.si_code <= 0:  # SI_USER and its like
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(child, received.si_signo)


def _limit(mebibytes: int) -> None:
    """Limit the memory that can be written, shared memory with it where a limit is named, and the
    threads of this user."""
    import resource

    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    wanted = {
        resource.RLIMIT_DATA: mebibytes << 20 or machine,
        resource.RLIMIT_NPROC: _number_of_threads() + MOST_PROCESSES,
    }
    if mebibytes:
        wanted[resource.RLIMIT_AS] = (mebibytes << 20) + MAPPED_BYTES
    for limit, value in wanted.items():
        set_limit(limit, value)


def _number_of_threads() -> int:
    """The threads of this user, which the system counts as processes."""
    found, user = 0, os.getuid()
    for process in os.scandir("/proc"):
        with suppress(OSError):
            if process.name.isdecimal() and process.stat().st_uid == user:
                found += sum(1 for _ in os.scandir(f"{process.path}/task"))
    return found


class _Supervision:
    """The supervisor's part, until the child and what it has started have ended."""

    def __init__(
        self, command: str, pid: int, supervisor: Supervisor, seconds: float, command_process: int
    ) -> None:
        self._command, self._pid, self._supervisor = command, pid, supervisor
        self._seconds, self._deadline = seconds, time.monotonic() + seconds
        self._child, self._command_process = os.pidfd_open(pid), command_process
        self._tried: dict[str, None] = {}

    def end(self) -> tuple[int, list[str]]:
        """Supervise to the end; the exit code, 1 at least where the program tried what it may not,
        and the reasons."""
        threading.Thread(target=_pass_on_signals, args=(self._child,), daemon=True).start()
        timed_out = not self._wait()
        if timed_out:
            signal.pidfd_send_signal(self._child, signal.SIGKILL)
        code = ended_with_children(self._pid)
        self._supervisor.close()
        return self._reported(code, timed_out)

    def _wait(self) -> bool:
        """Decide the attempts of the child; whether it ended before its time."""
        while True:
            rest = self._deadline - time.monotonic()
            if rest <= 0:
                return False
            asking = self._supervisor.descriptor
            watched = [self._child, self._command_process, *([asking] if asking >= 0 else [])]
            ready, _, _ = select.select(watched, [], [], None if rest == inf else rest)
            if asking in ready:
                attempt = self._supervisor.attend()
                if attempt and len(self._tried) < _MOST_ATTEMPTS:
                    self._tried[attempt] = None
            elif self._child in ready:
                return True
            elif self._command_process in ready:
                signal.pidfd_send_signal(self._child, signal.SIGKILL)

    def _reported(self, code: int, timed_out: bool) -> tuple[int, list[str]]:
        said = [f"the program may not do this: {attempt}" for attempt in self._tried]
        if code == -signal.SIGSYS:
            said.append("the program may not do this: calls the system as another architecture")
        if said:
            said[-1] += "; --unconfined allows everything"
        if timed_out:
            said = [f"stopped after {self._seconds:g} s; --timeout allows more"]
        elif code < 0 and -code not in _EXPECTED_SIGNALS:
            said.append(f"the program was ended by {signal_name(-code)}")
        for line in said:
            sys.stderr.write(f"{self._command}: {line}\n")
        sys.stderr.flush()
        return (code if code >= 0 else 128 - code) or int(bool(said)), said
