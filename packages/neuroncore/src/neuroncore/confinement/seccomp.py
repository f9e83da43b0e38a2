"""A filter of system calls whose attempts another process decides (seccomp, Linux 5.5 and later).

`install_filter` returns a descriptor; the process that holds it decides each watched call with a
`Supervisor` while the caller waits.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Kind = Literal["forbidden", "signal", "thread", "parent", "limit", "paths"]
"""What decides about a call: nothing, the process it names, whether it begins a thread, whether it
ends the death with the parent, whether it sets a limit, where its paths lie."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A system call: its number on x86-64 and on AArch64 (None: not there), what a forbidden one
    does, and per path the arguments with the folder's descriptor (None: no such) and the path."""

    name: str
    x86_64: int | None
    aarch64: int | None
    does: str
    kind: Kind = "forbidden"
    paths: tuple[tuple[int | None, int | None], ...] = ()


def _forbidden(does: str, **numbers: tuple[int | None, int | None]) -> Iterator[Watched]:
    for name, pair in numbers.items():
        yield Watched(name, *pair, does)


def _path(name: str, x86_64: int | None, aarch64: int | None, does: str, *paths: object) -> Watched:
    return Watched(name, x86_64, aarch64, does, "paths", paths)  # type: ignore[arg-type]


_PATH, _AT, _SECOND_AT, _DESCRIPTOR = (None, 0), (0, 1), (2, 3), (0, None)

WATCHED = (
    *_forbidden(
        "starts a process",
        fork=(57, None), vfork=(58, None), execve=(59, 221), execveat=(322, 281),
    ),
    Watched("clone", 56, 220, "starts a process", "thread"),
    *_forbidden("uses a socket", socket=(41, 198)),
    Watched("kill", 62, 129, "signals a process", "signal"),
    Watched("tgkill", 234, 131, "signals a process", "signal"),
    Watched("rt_sigqueueinfo", 129, 138, "signals a process", "signal"),
    Watched("rt_tgsigqueueinfo", 297, 240, "signals a process", "signal"),
    *_forbidden("signals a process", tkill=(200, 130), pidfd_send_signal=(424, 424)),
    *_forbidden(
        "traces a process",
        ptrace=(101, 117), process_vm_readv=(310, 270), process_vm_writev=(311, 271),
        pidfd_open=(434, 434), pidfd_getfd=(438, 438),
    ),
    *_forbidden("makes a device or a pipe", mknod=(133, None), mknodat=(259, 33)),
    *_forbidden(
        "changes the system",
        mount=(165, 40), umount2=(166, 39), pivot_root=(155, 41), chroot=(161, 51),
        unshare=(272, 97), setns=(308, 268), open_tree=(428, 428), move_mount=(429, 429),
        fsopen=(430, 430), mount_setattr=(442, 442), bpf=(321, 280), perf_event_open=(298, 241),
        init_module=(175, 105), finit_module=(313, 273), kexec_load=(246, 104),
        add_key=(248, 217), request_key=(249, 218), keyctl=(250, 219), reboot=(169, 142),
        swapon=(167, 224), settimeofday=(164, 170), clock_settime=(227, 112),
        sethostname=(170, 161), open_by_handle_at=(304, 265), userfaultfd=(323, 282),
    ),
    *_forbidden("raises a limit", setrlimit=(160, 164)),
    Watched("prlimit64", 302, 261, "raises a limit", "limit"),
    Watched("prctl", 157, 167, "outlives its parent", "parent"),
    _path("open", 2, None, "writes", _PATH),
    _path("openat", 257, 56, "writes", _AT),
    _path("creat", 85, None, "writes", _PATH),
    _path("truncate", 76, 45, "truncates", _PATH),
    _path("rename", 82, None, "renames", _PATH, (None, 1)),
    _path("renameat", 264, 38, "renames", _AT, _SECOND_AT),
    _path("renameat2", 316, 276, "renames", _AT, _SECOND_AT),
    _path("unlink", 87, None, "removes", _PATH),
    _path("unlinkat", 263, 35, "removes", _AT),
    _path("rmdir", 84, None, "removes", _PATH),
    _path("mkdir", 83, None, "makes", _PATH),
    _path("mkdirat", 258, 34, "makes", _AT),
    _path("link", 86, None, "links", _PATH, (None, 1)),
    _path("linkat", 265, 37, "links", _AT, _SECOND_AT),
    _path("symlink", 88, None, "links", (None, 1)),
    _path("symlinkat", 266, 36, "links", (1, 2)),
    _path("chmod", 90, None, "changes", _PATH),
    _path("fchmod", 91, 52, "changes", _DESCRIPTOR),
    _path("fchmodat", 268, 53, "changes", _AT),
    _path("chown", 92, None, "changes", _PATH),
    _path("lchown", 94, None, "changes", _PATH),
    _path("fchown", 93, 55, "changes", _DESCRIPTOR),
    _path("fchownat", 260, 54, "changes", _AT),
    _path("utime", 132, None, "changes", _PATH),
    _path("utimes", 235, None, "changes", _PATH),
    _path("futimesat", 261, None, "changes", _AT),
    _path("utimensat", 280, 88, "changes", _AT),
    _path("setxattr", 188, 5, "changes", _PATH),
    _path("lsetxattr", 189, 6, "changes", _PATH),
    _path("fsetxattr", 190, 7, "changes", _DESCRIPTOR),
    _path("removexattr", 197, 14, "changes", _PATH),
    _path("lremovexattr", 198, 15, "changes", _PATH),
    _path("fremovexattr", 199, 16, "changes", _DESCRIPTOR),
)  # fmt: skip
_ABSENT = (425, 435, 437, 452, 463, 466)
"""io_uring_setup, clone3, openat2, fchmodat2, setxattrat, removexattrat: "not implemented", after
which libraries use the calls above; their arguments are where no filter can read them."""
_FLAGS_OF = {"open": 1, "openat": 2}  # the argument with the flags: reading is not watched
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | 0o20000000  # __O_TMPFILE

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # <linux/audit.h>
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x06  # <linux/bpf_common.h>
_KILL, _NOTIFY, _ALLOW = 0x80000000, 0x7FC00000, 0x7FFF0000
_NOT_IMPLEMENTED = 0x00050000 | errno.ENOSYS
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_SET_FILTER, _NEW_LISTENER = 1, 1 << 3
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1

DEATH_SIGNAL = 1  # of prctl
_CLONE_THREAD = 0x10000
_LOCAL_SOCKETS = 1  # AF_UNIX: the C library opens one for its cache of names
_HERE = -100 & 0xFFFFFFFF  # AT_FDCWD
_LONGEST_PATH = 4096
_OF_PROCESSES = ("starts a process", "raises a limit")
_OF_A_LINK_ITSELF = ("removes", "renames", "links", "makes")


def watched_calls(processes: bool = False) -> dict[int, Watched]:
    """The watched calls of this machine by number; empty on another architecture.

    With `processes` the ones that start a process and set its limits are not watched.
    """
    if (machine := os.uname().machine) not in _ARCHITECTURES:
        return {}
    left_out = _OF_PROCESSES if processes else ()
    found = ((getattr(call, machine), call) for call in WATCHED if call.does not in left_out)
    return {number: call for number, call in found if number is not None}


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


def _program(calls: dict[int, Watched]) -> bytes:
    """The filter: instructions of code, two jumps and a constant.

    The last four are what the filter returns; a jump to one of them counts from its place.
    """
    rows: list[tuple[int, str | int, str | int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 0, "kill", _ARCHITECTURES[os.uname().machine]),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, "kill", 0, 0x40000000),  # x32: other numbers for the same calls
    ]
    rows += [(_EQUAL, "absent", 0, number) for number in _ABSENT]
    for number, call in calls.items():
        if call.name not in _FLAGS_OF:
            rows.append((_EQUAL, "notify", 0, number))
    for number, call in calls.items():
        if call.name in _FLAGS_OF:
            rows.append((_EQUAL, 0, 2, number))
            rows.append((_LOAD, 0, 0, _ARGUMENTS + 8 * _FLAGS_OF[call.name]))
            rows.append((_ANY_BIT, "notify", "allow", _WRITING))
    ends = {"allow": _ALLOW, "notify": _NOTIFY, "absent": _NOT_IMPLEMENTED, "kill": _KILL}
    places = {name: len(rows) + i for i, name in enumerate(ends)}

    def jump(to: str | int, here: int) -> int:
        return to if isinstance(to, int) else places[to] - here - 1

    rows += [(_RETURN, 0, 0, value) for value in ends.values()]
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
        self, folders: Sequence[Path], pid: int, from_job: socket.socket, unreported: str = ""
    ) -> None:
        self._folders, self._pid = [folder.resolve() for folder in folders], pid
        self._unreported = unreported
        self._channel: socket.socket | None = from_job
        self._calls = watched_calls()
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
        _answer(self.descriptor, mark, allowed=forbidden is None)
        return f"{forbidden} ({call.name})" if forbidden else None

    def _forbidden(self, call: Watched, thread: int, arguments: tuple[int, ...]) -> str | None:
        """The forbidden act of the call; "" for one that fails and is not worth a report."""
        first = arguments[0] & 0xFFFFFFFF
        if call.kind == "paths":
            return self._forbidden_path(call, thread, arguments)
        if call.name == "socket" and first == _LOCAL_SOCKETS:
            return ""
        allowed = {
            "signal": first == 0 or self._has_started(first),
            "thread": bool(first & _CLONE_THREAD),
            "parent": first != DEATH_SIGNAL or arguments[1] == signal.SIGKILL,
            "limit": arguments[2] == 0,
        }
        return None if allowed.get(call.kind, False) else call.does

    def _forbidden_path(self, call: Watched, thread: int, arguments: tuple[int, ...]) -> str | None:
        for folder, path in call.paths:
            base = (
                arguments[folder or 0] & 0xFFFFFFFF if folder is not None or path is None else _HERE
            )
            try:
                whole = self._whole(thread, base, None if path is None else arguments[path])
            except OSError:
                return f"{call.does} a file"  # unreadable memory, a descriptor that is not there
            real = _real(whole, call.does in _OF_A_LINK_ITSELF)
            made_before = call.does == "makes" and real.is_dir()  # the call fails by itself
            if not made_before and not self._may_write(real):
                return f"{call.does} {real}" * (self._unreported not in real.parts)
        return None

    def _has_started(self, number: int) -> bool:
        """Whether a process or group is the one that is confined, or descends from it."""
        process = number if number < 1 << 31 else (1 << 32) - number
        with suppress(OSError, ValueError):
            while process > 1 and process != self._pid:
                process = int(
                    Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]
                )
        return process == self._pid

    def _whole(self, thread: int, base: int, address: int | None) -> Path:
        process = Path(f"/proc/{thread}")
        name = _text_at(process / "mem", address) if address else ""
        start = process / "cwd" if base == _HERE else process / "fd" / str(base)
        if name.startswith(os.sep):
            for own in ("/proc/self", "/proc/thread-self", "/dev/fd"):
                if name == own or name.startswith(f"{own}/"):
                    name = str(process / ("fd" * (own == "/dev/fd"))) + name.removeprefix(own)
            return Path(name)
        return start.readlink() / name

    def _may_write(self, real: Path) -> bool:
        return any(map(real.is_relative_to, self._folders)) or str(real) in (os.devnull, "/dev/tty")


def _real(whole: Path, itself: bool) -> Path:
    return whole.parent.resolve() / whole.name if itself else whole.resolve()


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
