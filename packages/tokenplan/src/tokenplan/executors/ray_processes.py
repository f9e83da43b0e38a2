"""Processes of Ray that have outlived a local cluster."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

PROCESSES = Path("/proc")


def kill_processes_of(folder: Path) -> int:
    """End the programs of Ray, and its scripts in this Python, that have the path of a cluster's
    folder in an argument or a file of it open; not this process, nor one above it.

    Their number: while it is not 0, one of them may have started another.
    """
    spec = find_spec("ray")
    if spec is None or not spec.submodule_search_locations:
        return 0
    killed = 0
    ray = os.path.realpath(spec.submodule_search_locations[0]) + os.sep
    named = re.compile(rb"(?<![\w./-])" + re.escape(os.fsencode(folder)) + rb"(?![\w.-])")
    above = {*_with_parents(os.getpid())}
    for process in PROCESSES.glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes()
            number = int(process.name)
            if number in above or not _is_of(ray, process, words):
                continue
            if named.search(words) or _has_open(process, folder):
                os.kill(number, signal.SIGKILL)
                killed += 1
    return killed


def _has_open(process: Path, folder: Path) -> bool:
    """Whether it has a file in the folder open: agents replace arguments and environment."""
    start = os.path.realpath(folder) + os.sep
    for descriptor in (process / "fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            if str(descriptor.readlink()).startswith(start):
                return True
    return False


def _is_of(ray: str, process: Path, words: bytes) -> bool:
    """Whether the program, or the script of this Python, is in the folder of Ray."""
    program = str((process / "exe").readlink())
    if program != os.path.realpath(sys.executable):
        return program.startswith(ray)
    if words.startswith(b"ray::"):  # which replaces the arguments
        return True
    scripts = (os.path.realpath(word) for word in words.split(b"\0") if word[:1] == b"/")
    return any(script.startswith(os.fsencode(ray)) for script in scripts)


def _with_parents(number: int) -> Iterator[int]:
    with suppress(OSError):  # a system without these files
        while number:
            yield number
            stat = (PROCESSES / f"{number}/stat").read_text()
            number = int(stat.rpartition(")")[2].split()[1])
