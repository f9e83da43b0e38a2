"""The environment variables that the code of users sees: a short list, and what a user names."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

ENVIRONMENT = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "LC_*", "LANGUAGE", "TZ", "TERM",
    "COLORTERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TMPDIR", "TEMP", "TMP",
    "XDG_CACHE_HOME",
    "VIRTUAL_ENV", "CONDA_PREFIX", "PYTHON*", "PYTEST_*", "COVERAGE_*", "LD_LIBRARY_PATH", "DYLD_*",
    "SYSTEMROOT", "*_NUM_THREADS", "NKI_*", "NEURON_*", "JAX_*", "XLA_*", "CI",
)  # fmt: skip
"""Patterns of names: no key, token or address of a proxy."""


def allowed_environment(variables: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """The variables among ENVIRONMENT and those named in `more`."""
    patterns = (*ENVIRONMENT, *more)
    names = (n for n in variables if any(fnmatchcase(n, pattern) for pattern in patterns))
    return {name: variables[name] for name in names}


def limit_environment(command: str, more: Collection[str]) -> None:
    """Remove the other variables of this process; name one on stderr where the program reads it."""
    withheld = os.environ.keys() - allowed_environment(os.environ, more).keys()

    class Environment(type(os.environ)):  # type: ignore[misc]
        def __getitem__(self, key: str) -> str:
            try:
                return super().__getitem__(key)
            except KeyError:
                if key in withheld:
                    withheld.remove(key)
                    sys.stderr.write(
                        f"{command}: the program reads the variable {key}, which is withheld; "
                        f"--env {key} passes it on\n"
                    )
                raise

    _erase({os.fsencode(name) for name in withheld})
    for name in withheld:
        del os.environ[name]
    os.environ.__class__ = Environment


def _erase(names: Collection[bytes]) -> None:
    """Overwrite the values of variables where the kernel keeps them for /proc/self/environ, and
    where Python copied them when it began; what this process forks has the same memory.

    Nothing here copies a value: memory that is freed keeps its content.
    """
    import ctypes

    libc = ctypes.CDLL(None)
    libc.strnlen.restype, libc.memchr.restype = ctypes.c_size_t, ctypes.c_void_p
    place, end = _bounds()
    while place < end:
        entry, rest = ctypes.c_void_p(place), ctypes.c_size_t(end - place)
        size = libc.strnlen(entry, rest)
        equals = libc.memchr(entry, ord("="), ctypes.c_size_t(size)) or place
        if ctypes.string_at(place, equals - place) in names:
            ctypes.memset(place, 0, size)
        place += size + 1
    for name in names:
        value = os.environb[name]
        if len(value) > 1:  # shorter ones are shared by the whole process
            ctypes.memset(id(value) + bytes.__basicsize__ - 1, 0, len(value))


def _bounds() -> tuple[int, int]:
    """Where the environment begins and ends that this process was started with [proc(5)]."""
    fields = Path("/proc/self/stat").read_text(errors="replace").rpartition(")")[2].split()
    return int(fields[47]), int(fields[48])
