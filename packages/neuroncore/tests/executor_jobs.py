"""Jobs that tests run, by name: `JOBS + "square"`."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

JOBS = f"{__file__}:"


def square(payload, report):
    report(payload)
    return payload * payload


def slow_square(payload, report):
    time.sleep(0.01)
    return square(payload, report)


def hang(payload, report):
    time.sleep(600)


def fail(payload, report):
    raise ValueError(f"{payload} is wrong")


def leave(payload, report):
    raise {"SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt}[payload](3)


def wait_for_interrupt(payload, report):
    try:
        report("begun")
        time.sleep(600)
    except KeyboardInterrupt:
        return "interrupted"


def ignore_interrupt(payload, report):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    report("begun")
    time.sleep(600)


def block_threads(payload, report):
    """Writes the process's id to `payload`, then runs no other Python code."""
    Path(payload).write_text(str(os.getpid()))
    re.match(r"(a+)+$", "a" * 60 + "b")


def allocate(payload, report):
    return len(bytearray(payload))


def die(payload, report):
    os.kill(os.getpid(), signal.SIGKILL)


def die_first(payload, report):
    """Dies the first time that it runs; `payload` is a folder."""
    report("begun")
    with contextlib.suppress(FileExistsError):
        (Path(payload) / "ran").mkdir()
        os.kill(os.getpid(), signal.SIGKILL)
    return "ran again"


def hang_with_child(payload, report):
    """Starts a process that does not end, and writes its id to `payload`."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(payload).write_text(f"{os.getpid()} {child.pid}")
    time.sleep(600)


class Crafted:
    """Calls `os.mkdir` where it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def crafted(payload, report):
    """A value that makes the folder `payload` where it is read."""
    return [Crafted(payload)]
