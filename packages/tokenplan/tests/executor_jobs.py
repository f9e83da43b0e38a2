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


def text(payload, report):
    return "x" * payload


def niceness(payload, report):
    """Of the worker's process."""
    return os.getpriority(os.PRIO_PROCESS, 0)


def slow_square(payload, report):
    time.sleep(0.01)
    return square(payload, report)


def hang(payload, report):
    report("begun")
    time.sleep(600)


def fail(payload, report):
    raise ValueError(f"{payload} is wrong")


class Own(BaseException):
    pass


class UnsaidError(Exception):
    def __str__(self):
        raise ValueError("no text")


def leave(payload, report):
    kinds = (SystemExit, KeyboardInterrupt, GeneratorExit, Own, UnsaidError)
    raise {kind.__name__: kind for kind in kinds}[payload](3)


def unpicklable(payload, report):
    """As its value, or where `payload` is "report" as a report."""
    (report if payload == "report" else id)(threading.Lock())
    return threading.Lock()


def begin_message(payload, report):
    """Writes the beginning of a message to every socket, as one that is stopped meanwhile."""
    report("begun")
    for number in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(number, payload)
    time.sleep(600)


def print_and_end(payload, report):
    """By exit code or, where that is None, at its limit."""
    print("the last words")
    os.system("echo of a child")
    report("printed")
    time.sleep(600) if payload is None else os._exit(payload)


def wait_for_interrupt(payload, report):
    try:
        report("begun")
        for _ in range(6000):  # a Ray worker is interrupted between instructions of Python
            time.sleep(0.1)
    except KeyboardInterrupt:
        report("what it has found")
        return "interrupted"


class Interrupting:
    """Ends its process as Ctrl-C does where it is pickled."""

    def __reduce__(self):
        os.kill(os.getpid(), signal.SIGINT)
        return complex, (1, 2)


def report_interrupted(payload, report):
    """Ctrl-C comes while the report is sent."""
    try:
        report(Interrupting())
    except KeyboardInterrupt:
        return "interrupted"


def ignore_interrupt(payload, report):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    report("begun")
    time.sleep(600)


def block_threads(payload, report):
    """Reports the process's id, then runs no other Python code."""
    report([os.getpid()])
    re.match(r"(a+)+$", "a" * 60 + "b")


def fork(payload, report):
    """Both processes go on."""
    os.fork()
    return square(payload, report)


_ENDED, _LATE = threading.Event(), threading.Event()


def report_late(payload, report):
    """A first job's report that comes while the second one runs."""
    if payload == "second":
        _ENDED.set()
        _LATE.wait()
    else:
        threading.Thread(target=_report_once_it_has_ended, args=(report,), daemon=True).start()


def _report_once_it_has_ended(report):
    _ENDED.wait()
    report("late")
    _LATE.set()


def change_folder(payload, report):
    os.chdir("/")


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


def start_children(payload, report):
    """Starts processes that do not end, one in a session of its own, and reports all ids; then
    hangs or, where `payload` is "die", ends by itself.
    """
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    children = [subprocess.Popen(command, start_new_session=new) for new in (False, True)]
    report([os.getpid(), *(child.pid for child in children)])
    os.abort() if payload == "die" else time.sleep(600)


class Crafted:
    """Calls `os.mkdir` where it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def crafted(payload, report):
    """A value that makes the folder `payload` where it is read."""
    return [Crafted(payload)]
