"""Writing limited to one folder by the kernel (Landlock, Linux 5.13 and later)."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION = 1  # flag of create_ruleset: return the version of the interface
_PATH_BENEATH = 1
_WRITES_BY_VERSION = {1: (1, *range(4, 13)), 2: (13,), 3: (14,), 5: (15,)}
"""Bits of <linux/landlock.h> that change a file system: write, remove and make of every kind;
then renaming between folders, truncating, commands of devices."""
_TCP, _SCOPES = 0b11, 0b11  # bind and connect (4); abstract sockets and signals of others (6)
_WRITE_FILE = 1 << 1
_FILE_WRITES = _WRITE_FILE | 1 << 14

_libc = ctypes.CDLL(None, use_errno=True)


class _Ruleset(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("files", "network", "scoped")]


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


def landlock_version() -> int:
    """The version of the kernel's interface; 0 where it has none."""
    return max(0, _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION))


def limit_writes(folder: Path) -> bool:
    """Let this process, for the rest of its life, write beneath `folder` alone, connect to no TCP
    port and signal no process outside; False where the kernel cannot do that.

    The caller has given up new privileges (`PR_SET_NO_NEW_PRIVS`).
    """
    version = landlock_version()
    if not version:
        return False
    since = ((number, bits) for number, bits in _WRITES_BY_VERSION.items() if number <= version)
    writes = sum(1 << bit for _, bits in since for bit in bits)
    handled = _Ruleset(writes, _TCP * (version >= 4), _SCOPES * (version >= 6))
    ruleset = _call(_CREATE_RULESET, ctypes.byref(handled), ctypes.sizeof(handled), 0)
    for path, allowed in ((str(folder), writes), (os.devnull, writes & _FILE_WRITES)):
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = _PathRule(allowed, opened)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
        os.close(opened)
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)
    return True


def _call(*arguments: object) -> int:
    done = _libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if done < 0:
        raise OSError(ctypes.get_errno(), "landlock")
    return done
