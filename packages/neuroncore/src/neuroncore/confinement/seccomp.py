"""A filter of system calls whose attempts another process decides (seccomp, Linux 5.5 and later).

`install_filter` returns a descriptor; the process that holds it decides each watched call with a
`Supervisor` while the caller waits.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import signal
import socket
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from neuroncore.confinement.printable_text import printable
from neuroncore.confinement.process import DEVICES
from neuroncore.confinement.system_calls import (
    ABSENT,
    ARCHITECTURES,
    AT_LEAST,
    EQUAL,
    FORBIDDEN_REQUESTS,
    LOAD,
    MOST_PROCESSES,
    NAMESPACES,
    RETURN,
    SET_OWNER,
    Row,
    Watched,
    watched_calls,
)

_KILL, _NOTIFY, _ALLOW = 0x80000000, 0x7FC00000, 0x7FFF0000
_NOT_IMPLEMENTED = 0x00050000 | errno.ENOSYS
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_SET_FILTER, _NEW_LISTENER = 1, 1 << 3
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1

DEATH_SIGNAL = 1  # of prctl
_LOCAL_SOCKETS = 1  # AF_UNIX: the C library opens one for its cache of names
_PROCESS = {"setpriority": 0, "ioprio_set": 1}  # the first argument where the second is a process
_FAMILY = re.compile(r"^Tgid:\t(\d+)$.*^PPid:\t(\d+)$", re.MULTILINE | re.DOTALL)
_HERE = -100 & 0xFFFFFFFF  # AT_FDCWD
_LONGEST_PATH = 4096
_STREAMS = {f"/dev/{name}": f"/dev/fd/{n}" for n, name in enumerate(("stdin", "stdout", "stderr"))}
_OF_A_LINK_ITSELF = ("removes", "renames", "links", "makes")


def install_filter(processes: bool = False) -> int | None:
    """Watch the calls of this process for the rest of its life; None where the kernel cannot.

    The caller has given up new privileges (`PR_SET_NO_NEW_PRIVS`).
    """
    calls = watched_calls(processes)
    if not calls:
        return None
    code = _program(calls)
    text = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(text))
    libc, number = ctypes.CDLL(None, use_errno=True), _SECCOMP[os.uname().machine]
    found = libc.syscall(number, _SET_FILTER, _NEW_LISTENER, program)
    return None if found < 0 else found


def _program(calls: Mapping[int, Watched]) -> bytes:
    """The filter: instructions of code, two jumps and a constant.

    The last four are what the filter returns; a jump to one of them counts from its place.
    """
    rows: list[Row] = [
        (LOAD, 0, 0, _ARCHITECTURE),
        (EQUAL, 0, "kill", ARCHITECTURES[os.uname().machine]),
        (LOAD, 0, 0, _NUMBER),
        (AT_LEAST, "kill", 0, 0x40000000),  # x32: other numbers for the same calls
    ]
    rows += [(EQUAL, "absent", 0, number) for number in ABSENT]
    rows += [(EQUAL, "notify", 0, number) for number, call in calls.items() if not call.test]
    for number, call in calls.items():
        if call.test:
            rows.append((EQUAL, 0, 1 + len(call.test), number))
            rows.append((LOAD, 0, 0, _ARGUMENTS + 8 * call.argument))
            rows += call.test
    ends = {"allow": _ALLOW, "notify": _NOTIFY, "absent": _NOT_IMPLEMENTED, "kill": _KILL}
    places = {name: len(rows) + i for i, name in enumerate(ends)}

    def jump(to: str | int, here: int) -> int:
        return to if isinstance(to, int) else places[to] - here - 1

    rows += [(RETURN, 0, 0, value) for value in ends.values()]
    return b"".join(
        struct.pack("HBBI", code, jump(yes, i), jump(no, i), constant)
        for i, (code, yes, no, constant) in enumerate(rows)
    )


def _receive(listener: int) -> tuple[int, int, int, tuple[int, ...]] | None:
    """The next attempt: its mark, the thread, the call's number, six arguments; None for none."""
    buffer = bytearray(80)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer)
    except OSError:  # the process has died meanwhile
        return None
    mark, thread, _, number, _, _, *arguments = struct.unpack("QIIiIQ6Q", buffer)
    return mark, thread, number, tuple(arguments)


def _answer(listener: int, mark: int, allowed: bool) -> None:
    """Let the waiting call happen, or fail with EACCES."""
    error, flags = (0, _CONTINUE) if allowed else (-errno.EACCES, 0)
    try:
        fcntl.ioctl(listener, _SEND, struct.pack("QqiI", mark, 0, error, flags))
    except OSError:
        return  # the process has died meanwhile


class Supervisor:
    """Decides the watched calls of the process `pid` and of what it starts.

    Attempts at paths with a name of `unreported` fail, and are not worth a report.
    """

    def __init__(
        self, folders: Sequence[Path], pid: int, from_job: socket.socket, unreported: str = "",
        processes: bool = False, devices: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self._devices = (*DEVICES, *devices)
        self._folders, self._pid = [folder.resolve() for folder in folders], pid
        self._unreported = unreported
        self._channel: socket.socket | None = from_job
        self._calls = watched_calls(processes)
        self._more_processes = 0
        self.descriptor = from_job.fileno()

    def close(self) -> None:
        """Stop deciding: calls that wait fail."""
        if self._channel is not None:
            self._channel.close()
        elif self.descriptor >= 0:
            os.close(self.descriptor)
        self._channel, self.descriptor = None, -1

    def attend(self) -> str | None:
        """Handle what made the descriptor readable; a forbidden attempt, for the user."""
        if self._channel is not None:
            _, found, _, _ = socket.recv_fds(self._channel, 1, 1)
            self.close()
            self.descriptor = found[0] if found else -1
            return None
        received = _receive(self.descriptor)
        if received is None:
            self.close()
            return None
        mark, thread, number, arguments = received
        call = self._calls[number]
        forbidden = self._forbidden(call, thread, arguments)
        attempt = printable(f"{forbidden} ({call.name})") if forbidden else None
        _answer(self.descriptor, mark, allowed=forbidden is None)
        return attempt

    def _forbidden(self, call: Watched, thread: int, arguments: tuple[int, ...]) -> str | None:
        """The forbidden act of the call; "" for one that fails and is not worth a report."""
        first, second = arguments[0] & 0xFFFFFFFF, arguments[1] & 0xFFFFFFFF
        if call.kind == "request" and second in FORBIDDEN_REQUESTS:
            return FORBIDDEN_REQUESTS[second]
        if call.name == "clone" and first & NAMESPACES:
            return "makes a namespace"
        if call.kind in ("paths", "request"):
            return self._forbidden_path(call, thread, arguments)
        if call.name == "socket" and first == _LOCAL_SOCKETS:
            return ""
        decide = _DECIDED.get(call.kind)
        is_allowed = decide is not None and decide(self, call.name, first, second, arguments[2])
        return None if is_allowed else call.does

    def may_fork(self) -> bool:
        """Whether one more process is allowed; they are counted when so many may be there."""
        if not self._more_processes:
            there = sum(1 for _ in descendants(os.getpid()))
            self._more_processes = max(0, MOST_PROCESSES - there)
        is_allowed = self._more_processes > 0
        self._more_processes -= is_allowed
        return is_allowed

    def _forbidden_path(self, call: Watched, thread: int, arguments: tuple[int, ...]) -> str | None:
        for folder, path in call.paths:
            base = _HERE if folder is None else arguments[folder] & 0xFFFFFFFF
            try:
                whole = self._whole(thread, base, None if path is None else arguments[path])
            except (OSError, OverflowError):
                return f"{call.does} a file"  # unreadable memory, a descriptor that is not there
            if not whole.is_absolute():  # "socket:[…]", "pipe:[…]"
                continue
            real = _real(whole, call.does in _OF_A_LINK_ITSELF)
            made_before = call.does == "makes" and _is_folder(real)  # the call fails by itself
            if not made_before and not self._may_write(real):
                return f"{call.does} {real}" * (self._unreported not in real.parts)
        return None

    def is_own(self, number: int) -> bool:
        """Whether a process, thread or group is the one that is confined, or descends from it; 0
        names the caller.
        """
        process = number if number < 1 << 31 else (1 << 32) - number
        with suppress(OSError):
            while process > 1 and process != self._pid:
                found = _FAMILY.search(Path(f"/proc/{process}/status").read_text(errors="replace"))
                assert found is not None
                process = self._pid if int(found[1]) == self._pid else int(found[2])
        return number == 0 or process == self._pid

    def _whole(self, thread: int, base: int, address: int | None) -> Path:
        process = Path(f"/proc/{thread}")
        name = _text_at(process / "mem", address) if address else ""
        start = process / "cwd" if base == _HERE else process / "fd" / str(base)
        if name.startswith(os.sep):
            name = _STREAMS.get(name, name)
            for own in ("/proc/self", "/proc/thread-self", "/dev/fd"):
                if name == own or name.startswith(f"{own}/"):
                    name = str(process / ("fd" * (own == "/dev/fd"))) + name.removeprefix(own)
            whole = Path(name)
            return whole.readlink() if whole.parent == process / "fd" else whole
        return start.readlink() / name

    def _may_write(self, real: Path) -> bool:
        return any(map(real.is_relative_to, self._folders)) or str(real) in self._devices


_DECIDED: Mapping[str, Callable[[Supervisor, str, int, int, int], bool]] = {
    "process": lambda supervisor, name, first, second, third: supervisor.is_own(first),
    "priority": lambda supervisor, name, first, second, third: (
        first == _PROCESS[name] and supervisor.is_own(second)
    ),
    "owner": lambda supervisor, name, first, second, third: (
        second == SET_OWNER and supervisor.is_own(third & 0xFFFFFFFF)
    ),
    "parent": lambda supervisor, name, first, second, third: (
        first != DEATH_SIGNAL or second == signal.SIGKILL
    ),
    "limit": lambda supervisor, name, first, second, third: third == 0,
    "fork": lambda supervisor, name, first, second, third: supervisor.may_fork(),
}
"""Whether a call with its first three arguments is allowed, of kinds that need no path."""


def descendants(process: int) -> Iterator[int]:
    """The processes that a process, and those, have started."""
    waiting = [process]
    while waiting:
        for children in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            with suppress(OSError):
                found = [*map(int, children.read_text().split())]
                waiting += found
                yield from found


def _real(whole: Path, itself: bool) -> Path:
    """The path without links; `Path.resolve` raises for a link that leads to itself."""
    real = os.path.realpath(whole.parent if itself else whole)
    return Path(real, whole.name) if itself else Path(real)


def _is_folder(path: Path) -> bool:
    with suppress(OSError):  # a name that is too long
        return path.is_dir()
    return False


def _text_at(memory: Path, address: int) -> str:
    with memory.open("rb", buffering=0) as file:
        file.seek(address)
        read = b""
        while b"\0" not in read and len(read) < _LONGEST_PATH:
            step = 256 - (address + len(read)) % 256  # never across a page that may be missing
            more = b""
            with suppress(OverflowError):
                more = file.read(step)
            if not more:
                raise OSError(f"no text at {address:#x}")
            read += more
    return os.fsdecode(read.split(b"\0")[0])
