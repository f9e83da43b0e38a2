"""Ctrl-C and signals that end a process: one exception, one message, one exit code."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

from neuroncore.commands.streams import Main

INTERRUPTED = 130
"""An exit code, as a shell reports SIGINT."""
TERMINATIONS = (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))

ENDING = (signal.SIGINT, *TERMINATIONS)


def report_interruption(command: str, what: str = "nothing was reported") -> int:
    """Print a line on stderr; the exit code."""
    sys.stderr.write(f"{command}: interrupted; {what}\n")
    return INTERRUPTED


def entry_point(command: str, module: str, has_signals: bool = False) -> Main:
    """The function `main` of a module that is imported when it is called, so that an interruption
    of these imports is one of the command. With `has_signals` its run is not concerned: signals are
    the ones of a program that it executes.
    """

    def main(argv: Sequence[str] | None = None) -> int:
        with termination_interrupts():
            try:
                run = import_module(module).main
                if not has_signals:
                    return run(argv)
            except KeyboardInterrupt:
                return report_interruption(command)
        return run(argv)

    return main


@contextmanager
def termination_interrupts() -> Iterator[None]:
    """SIGTERM and SIGHUP do what Ctrl-C does, where they would end this process at once."""
    is_main = threading.current_thread() is threading.main_thread()
    changed = [n for n in TERMINATIONS if is_main and signal.getsignal(n) is signal.SIG_DFL]
    try:
        for number in changed:
            signal.signal(number, _interrupt)
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def uninterrupted() -> Iterator[list[int]]:
    """Signals that interrupt or end this process are listed, and raise KeyboardInterrupt at the
    end; a second one does at once. Ignored ones stay so.
    """
    seen: list[int] = []

    def interrupt(number: int, *_: object) -> None:
        seen.append(number)
        if len(seen) > 1:
            raise KeyboardInterrupt

    is_main = threading.current_thread() is threading.main_thread()
    found = {number: signal.getsignal(number) for number in ENDING if is_main}
    before = {n: handler for n, handler in found.items() if handler not in (None, signal.SIG_IGN)}
    try:
        for number in before:
            signal.signal(number, interrupt)
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if seen:
        raise KeyboardInterrupt


@contextmanager
def delayed_signals() -> Iterator[None]:
    """Signals that interrupt or end this process reach this thread at the end: no system call of
    it is cut short by one.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows interrupts none
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """What Ctrl-C does, also where a shell that runs this in the background ignores it."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(number, frame)
