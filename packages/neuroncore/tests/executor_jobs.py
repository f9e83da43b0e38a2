"""Jobs that tests run, by name: `JOBS + "square"`."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
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
        for _ in range(6000):  # a Ray worker is interrupted between instructions of Python
            time.sleep(0.1)
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


def hang_with_children(payload, report):
    """Starts processes that do not end, one in a session of its own; writes ids to `payload`."""
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    children = [subprocess.Popen(command, start_new_session=new) for new in (False, True)]
    ids = " ".join(map(str, [os.getpid(), *(child.pid for child in children)]))
    Path(payload).with_suffix(".new").write_text(ids)
    Path(payload).with_suffix(".new").rename(payload)
    time.sleep(600)


def die_with_children(payload, report):
    """The same, once; the worker ends by itself."""
    threading.Timer(1.0, os.abort).start()
    hang_with_children(payload, report)


class Crafted:
    """Calls `os.mkdir` where it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def crafted(payload, report):
    """A value that makes the folder `payload` where it is read."""
    return [Crafted(payload)]
