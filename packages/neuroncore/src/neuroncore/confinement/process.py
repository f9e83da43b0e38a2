"""Limits of a confined process: its folders, its own processes, no network.

The process itself calls `confine`. Landlock limits writing (Linux 5.13); `seccomp` sends the
attempts at everything else to the process that forked it, where they fail with EACCES and are
reported, also if the code ignores the error. Landlock works also where a second thread exchanges
a path between the decision and the call. Elsewhere than on Linux nothing of this is there.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_NO_NEW_PRIVILEGES, _DEATH_SIGNAL, _SUBREAPER = 38, 1, 36  # <linux/prctl.h>
_DROP_BOUND, _CAPABILITIES, _CAPABILITY_SETS = 24, 64, 0x20080522  # <linux/capability.h>
_KEPT = sum(1 << number for number in (0, 1, 2, 3, 4, 5, 6, 7, 14))
"""Owners and modes of files, signals (`seccomp` decides them), other users, locked memory."""
FILE_BYTES = 1 << 30

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION = 1  # flag of create_ruleset: return the version of the interface
_PATH_BENEATH = 1
_WRITES_BY_VERSION = {1: (1, *range(4, 13)), 2: (13,), 3: (14,), 5: (15,)}
"""Bits of <linux/landlock.h> that change a file system: write, remove and make of every kind;
then renaming between folders, truncating, commands of devices."""
_TCP, _SCOPES = 0b11, 0b11  # bind and connect (4); abstract sockets and signals of others (6)
_WRITE_FILE = 1 << 1
DEVICES = (os.devnull, "/dev/tty")
_FILE_WRITES = _WRITE_FILE | 1 << 14


def missing_confinement() -> str:
    """Limits that this system cannot enforce on user code, a sentence; empty without any."""
    if sys.platform != "linux":
        return "nothing but Python's audit events confines the kernels that run"
    if not landlock_version():
        return "the kernel has no Landlock: a second thread of user code can write outside"
    return ""


def set_subreaper() -> None:
    """Become the parent of what a child has started, when the child ends."""
    _libc().prctl(_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(parent: int) -> None:
    """End this process when the one that forked it ends."""
    _libc().prctl(_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def ended_with_children(pid: int) -> int:
    """The exit code of a child that this waits for, negative of a signal. What it has started ends
    with it, which is this process's where it is a subreaper.
    """
    _, status = os.waitpid(pid, 0)
    while True:
        with suppress(OSError):
            for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
                os.kill(int(child), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return os.waitstatus_to_exitcode(status)


def confine(
    folders: Sequence[Path],
    to_supervisor: socket.socket,
    file_bytes: int = FILE_BYTES,
    processes: bool = False,
    devices: Sequence[str] = (),
) -> None:
    """Let this process write beneath `folders` and to `devices` alone, files of at most so many
    bytes, and start processes only with `processes`, as far as the kernel can.
    """
    import resource

    from neuroncore.confinement.seccomp import install_filter

    set_limit(resource.RLIMIT_CORE, 0)
    set_limit(resource.RLIMIT_FSIZE, file_bytes)
    with to_supervisor:
        _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
        drop_capabilities()
        limit_writes(*folders, devices=devices)
        listener = install_filter(processes)
        if listener is not None:
            socket.send_fds(to_supervisor, [b"L"], [listener])
            os.close(listener)


def set_limit(limit: int, value: int) -> None:
    """Limit this process for the rest of its life, where its limit is not lower already."""
    import resource

    most = resource.getrlimit(limit)[1]
    value = value if most == resource.RLIM_INFINITY else min(value, most)
    resource.setrlimit(limit, (value, value))


def drop_capabilities() -> None:
    """Give up, for the rest of this process's life, what root may do besides accessing files of
    others: raise limits, read the memory and variables of processes, administer the system.
    """
    for number in range(_CAPABILITIES):
        if not _KEPT >> number & 1:
            _libc().prctl(_DROP_BOUND, number, 0, 0, 0)
    header, sets = (ctypes.c_uint32 * 2)(_CAPABILITY_SETS, 0), (ctypes.c_uint32 * 6)()
    _libc().capget(header, sets)
    sets[:] = [*(found & _KEPT for found in sets[:3]), 0, 0, 0]
    _libc().capset(header, sets)


class _Ruleset(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("files", "network", "scoped")]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def landlock_version() -> int:
    """The version of the kernel's interface; 0 where it has none."""
    return max(0, _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION))


def standard_outputs() -> list[str]:
    """The paths of the terminal or file that stdout and stderr are, for programs that open them
    again as /dev/stdout."""
    found = []
    for number in (1, 2):
        with suppress(OSError):
            path = Path(f"/proc/self/fd/{number}").readlink()
            writes = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
            if writes and os.path.samestat(path.stat(), os.fstat(number)):
                found.append(str(path))
    return found


def limit_writes(*folders: Path, devices: Sequence[str] = ()) -> None:
    """Let this process, for the rest of its life, write beneath `folders` and to `devices` alone,
    connect to no TCP port and signal no process outside, as far as the kernel can.

    The caller has given up new privileges (`PR_SET_NO_NEW_PRIVS`).
    """
    version = landlock_version()
    if not version:
        return
    since = ((number, bits) for number, bits in _WRITES_BY_VERSION.items() if number <= version)
    writes = sum(1 << bit for _, bits in since for bit in bits)
    handled = _Ruleset(writes, _TCP * (version >= 4), _SCOPES * (version >= 6))
    ruleset = _call(_CREATE_RULESET, ctypes.byref(handled), ctypes.sizeof(handled), 0)
    files = ((file, writes & _FILE_WRITES) for file in (*DEVICES, *devices) if Path(file).exists())
    for path, allowed in (*((str(folder), writes) for folder in folders), *files):
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = _PathRule(allowed, opened)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
        os.close(opened)
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _call(*arguments: object) -> int:
    done = _libc().syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if done < 0:
        raise OSError(ctypes.get_errno(), "landlock")
    return done


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
