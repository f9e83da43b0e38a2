"""System calls whose attempts are decided, and which of them the filter lets through by itself.

The last of two rows for one call is the one for a process that may start no others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal[
    "forbidden", "process", "priority", "owner", "request", "parent", "limit", "fork", "paths"
]
"""What decides about a call: nothing, the process that it names (as first argument, after the kind
of a name, after a command of fcntl), the request of ioctl, whether it ends the death with the
parent, whether it sets a limit, how many processes there are, where its paths lie."""
Row = tuple[int, str | int, str | int, int]
"""An instruction of the filter: its code, two jumps (a name or a number of rows), a constant."""

LOAD, EQUAL, ANY_BIT, AT_LEAST, AND, RETURN = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06  # <linux/bpf.h>
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | 0o20000000  # __O_TMPFILE
_CLONE_THREAD, NAMESPACES = 0x10000, 0x7E020000  # of clone
SET_OWNER, _SET_OWNER_EX = 8, 15  # of fcntl: which process gets a signal when a file is ready
_FIEMAP = 0xC020660B
FORBIDDEN_REQUESTS = {
    0x5412: "types into the terminal", 0x541C: "types into the terminal",  # TIOCSTI, TIOCLINUX
    0x8901: "signals a process", 0x8902: "signals a process",  # FIOSETOWN, SIOCSPGRP
}  # fmt: skip
_READS, _WRITES = 1 << 31, 1 << 30  # of the request of an ioctl, seen from the program
_IF_WRITING: tuple[Row, ...] = ((ANY_BIT, "notify", "allow", _WRITING),)
_IF_NO_THREAD: tuple[Row, ...] = ((ANY_BIT, "allow", "notify", _CLONE_THREAD),)
_IF_SETTING_OWNER: tuple[Row, ...] = (
    (EQUAL, "notify", 0, SET_OWNER),
    (EQUAL, "notify", "allow", _SET_OWNER_EX),
)
_IF_CHANGING: tuple[Row, ...] = (
    *((EQUAL, "notify", 0, request) for request in FORBIDDEN_REQUESTS),
    (EQUAL, "allow", 0, _FIEMAP),
    (ANY_BIT, 0, 1, _READS),
    (ANY_BIT, 0, "allow", _WRITES),
    (AND, 0, 0, 0xFF00),
    (EQUAL, "allow", "notify", 0x5400),  # the other requests of terminals
)
"""Requests that may change a file, such as its flags (chattr) or a subvolume."""


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
    argument: int = 0
    test: tuple[Row, ...] = ()
    """Which values of `argument` are watched; empty: the call is."""


def _forbidden(does: str, **numbers: tuple[int | None, int | None]) -> Iterator[Watched]:
    for name, pair in numbers.items():
        yield Watched(name, *pair, does)


def _of_process(
    name: str, x86_64: int, aarch64: int | None, does: str, kind: Kind = "process"
) -> Watched:
    return Watched(name, x86_64, aarch64, does, kind)


def _path(name: str, x86_64: int | None, aarch64: int | None, does: str, *paths: object) -> Watched:
    return Watched(name, x86_64, aarch64, does, "paths", paths)  # type: ignore[arg-type]


MOST_PROCESSES = 512
"""Of a command that may start some."""
MANY = "starts too many processes"
_PATH, _AT, _SECOND_AT, _DESCRIPTOR = (None, 0), (0, 1), (2, 3), (0, None)

WATCHED = (
    _of_process("fork", 57, None, MANY, "fork"),
    _of_process("vfork", 58, None, MANY, "fork"),
    Watched("clone", 56, 220, MANY, "fork", test=_IF_NO_THREAD),
    *_forbidden(
        "starts a process",
        fork=(57, None), vfork=(58, None), execve=(59, 221), execveat=(322, 281),
    ),
    Watched("clone", 56, 220, "starts a process", test=_IF_NO_THREAD),
    *_forbidden("uses a socket", socket=(41, 198)),
    *_forbidden(
        "uses memory or messages of other processes",
        shmget=(29, 194), shmat=(30, 196), shmctl=(31, 195), semget=(64, 190), semop=(65, 193),
        semctl=(66, 191), semtimedop=(220, 192), msgget=(68, 186), msgsnd=(69, 189),
        msgrcv=(70, 188), msgctl=(71, 187), mq_open=(240, 180), mq_unlink=(241, 181),
    ),
    _of_process("kill", 62, 129, "signals a process"),
    _of_process("tgkill", 234, 131, "signals a process"),
    _of_process("rt_sigqueueinfo", 129, 138, "signals a process"),
    _of_process("rt_tgsigqueueinfo", 297, 240, "signals a process"),
    Watched("fcntl", 72, 25, "signals a process", "owner", (), 1, _IF_SETTING_OWNER),
    Watched("ioctl", 16, 29, "changes", "request", ((0, None),), 1, _IF_CHANGING),
    _of_process("sched_setaffinity", 203, 122, "changes a process"),
    _of_process("sched_setscheduler", 144, 119, "changes a process"),
    _of_process("sched_setparam", 142, 118, "changes a process"),
    _of_process("sched_setattr", 314, 274, "changes a process"),
    _of_process("migrate_pages", 256, 238, "changes a process"),
    _of_process("move_pages", 279, 239, "changes a process"),
    _of_process("setpriority", 141, 140, "changes a process", "priority"),
    _of_process("ioprio_set", 251, 30, "changes a process", "priority"),
    _of_process("prlimit64", 302, 261, "changes a process"),
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
    Watched("open", 2, None, "writes", "paths", (_PATH,), 1, _IF_WRITING),
    Watched("openat", 257, 56, "writes", "paths", (_AT,), 2, _IF_WRITING),
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
ABSENT = (425, 435, 437, 452, 463, 466, 467, 469)
"""io_uring_setup, clone3, openat2, fchmodat2, setxattrat, removexattrat, open_tree_attr,
file_setattr: "not implemented", after which libraries use the calls above; their arguments are
where no filter can read them."""
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # <linux/audit.h>
OF_PROCESSES = ("starts a process", "raises a limit")


def watched_calls(processes: bool = False) -> dict[int, Watched]:
    """The watched calls of this machine by number; empty on another architecture.

    With `processes` it may start others and set its limits, and their number is watched.
    """
    if (machine := os.uname().machine) not in ARCHITECTURES:
        return {}
    left_out = OF_PROCESSES if processes else ()
    found = ((getattr(call, machine), call) for call in WATCHED if call.does not in left_out)
    return {number: call for number, call in found if number is not None}
