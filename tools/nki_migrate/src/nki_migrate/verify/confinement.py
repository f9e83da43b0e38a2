"""What the kernel holds a job to: its folder, its own process, no network; and who decides.

`confine` is called by the job. Its attempts at what `seccomp` watches are decided by a `Supervisor`
in the process that forked it: what it does not allow fails with EACCES, and is reported, whatever
the job makes of the error. Landlock holds also where a second thread exchanges a path between the
decision and the call. Elsewhere than on Linux nothing of this is there.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
from contextlib import suppress
from pathlib import Path

from nki_migrate.verify import seccomp
from nki_migrate.verify.landlock import limit_writes

_NO_NEW_PRIVILEGES, _DEATH_SIGNAL = 38, 1  # <linux/prctl.h>
_CLONE_THREAD = 0x10000
_LOCAL_SOCKETS = 1  # AF_UNIX: the C library looks for its cache of names with one
_HERE = -100 & 0xFFFFFFFF  # AT_FDCWD
_LONGEST_PATH = 4096
_FILE_BYTES = 1 << 30
_OF_A_LINK_ITSELF = ("removes", "renames", "links", "makes")


def die_with_parent(parent: int) -> None:
    """End this process when the one that forked it ends."""
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def confine(folder: Path, to_supervisor: socket.socket) -> None:
    """Hold this process to `folder` as far as the kernel can."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    with to_supervisor:
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        limit_writes(folder)
        listener = seccomp.install_filter()
        if listener is not None:
            socket.send_fds(to_supervisor, [b"L"], [listener])
            os.close(listener)


class Supervisor:
    """Decides the watched calls of one job, whose process is `pid`."""

    def __init__(self, folder: Path, pid: int, from_job: socket.socket) -> None:
        self._folder, self._pid = folder.resolve(), pid
        self._channel: socket.socket | None = from_job
        self._calls = seccomp.watched_calls()
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
        received = seccomp.receive(self.descriptor)
        if received is None:
            self.close()
            return None
        mark, thread, number, arguments = received
        call = self._calls[number]
        forbidden = self._forbidden(call, thread, arguments)
        seccomp.answer(self.descriptor, mark, allowed=forbidden is None)
        return f"{forbidden} ({call.name})" if forbidden else None

    def _forbidden(
        self, call: seccomp.Watched, thread: int, arguments: tuple[int, ...]
    ) -> str | None:
        """What the call does that it may not; "" for what fails and is not worth a report."""
        first = arguments[0] & 0xFFFFFFFF
        if call.kind == "paths":
            return self._forbidden_path(call, thread, arguments)
        if call.name == "socket" and first == _LOCAL_SOCKETS:
            return ""
        allowed = {
            "signal": first in (0, self._pid),
            "thread": bool(first & _CLONE_THREAD),
            "parent": first != _DEATH_SIGNAL,
            "limit": arguments[2] == 0,
        }
        return None if allowed.get(call.kind, False) else call.does

    def _forbidden_path(
        self, call: seccomp.Watched, thread: int, arguments: tuple[int, ...]
    ) -> str | None:
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
                return f"{call.does} {real}"
        return None

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
        return real.is_relative_to(self._folder) or str(real) == os.devnull


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
