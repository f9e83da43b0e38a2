"""Errors of a program that a command runs: the lines of the user, without frames of the project."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from types import FrameType, TracebackType

from neuroncore.errors import OUR_PACKAGES, KernelError
from neuroncore.findings.finding import Region

_RUNNERS = frozenset({"nki_runtime", "runpy", "importlib"})
_LIBRARIES = ("<frozen ", *{p for name, p in sysconfig.get_paths().items() if "lib" in name})


def report(error: BaseException) -> None:
    """Print `error` on stderr as Python would, without the frames that ran the program.

    A KernelError comes with the lines of the user's own program only, then what is wrong, where,
    and what to do. So do other errors that the user's code raises; one that ours raises keeps every
    frame below the program.
    """
    inside = _skip_runners(error.__traceback__)
    if isinstance(error, KernelError) and sys.excepthook is sys.__excepthook__:
        sys.stderr.write(render(error, inside))
    else:
        inside = _of_the_user(inside)
        sys.excepthook(type(error), error.with_traceback(inside), inside)


def is_of_user(error: Exception) -> bool:
    """Whether a file of the user raised it, itself or in a library that it called, or cannot be
    imported."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) or (frames and _package(frames[-1]) == "importlib"):
        return True
    owned = (f for f in reversed(frames) if _is_ours(f) or not _is_of_library(f))
    innermost = next(owned, None)
    return innermost is not None and not _is_ours(innermost)


def place_of_user(error: BaseException) -> Region | None:
    """The user's line where it was raised; of a SyntaxError, the line that is wrong."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        line, column = error.lineno or 1, error.offset or 1
        return Region(error.filename, line, column, line, column + 1)
    frames = user_frames(error)
    if not frames:
        return None
    frame, line = frames[-1]
    return Region(frame.f_code.co_filename, line, 1, line + 1, 1)


def user_frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """The frames of the user's files that the error passed, each with its line."""
    frames = traceback.walk_tb(error.__traceback__)
    return [(f, line) for f, line in frames if not (_is_ours(f) or _is_of_library(f))]


def render(error: KernelError, trace: TracebackType | None) -> str:
    """The traceback lines of `trace` that are the user's, and the error's own text."""
    frames = [frame for frame in traceback.walk_tb(trace) if not _is_ours(frame[0])]
    lines = traceback.StackSummary.extract(iter(frames)).format()
    head = ["Traceback (most recent call last; only your own lines):\n"] if lines else []
    notes = [f"{note}\n" for note in getattr(error, "__notes__", ())]
    return "".join([*head, *lines, f"{type(error).__name__}: {error}\n", *notes])


def render_usage(error: KernelError) -> str:
    """The error's text without a place: nothing of the user's program has run yet."""
    error.place = None
    return str(error)


def _skip_runners(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and _package(trace.tb_frame) in _RUNNERS:
        trace = trace.tb_next
    return trace


def _of_the_user(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without our frames if it ends in one that is not ours; else as it is."""
    steps = []
    step = trace
    while step is not None:
        steps.append(step)
        step = step.tb_next
    if not steps or _is_ours(steps[-1].tb_frame):
        return trace
    found = None
    for step in reversed(steps):
        if not _is_ours(step.tb_frame) and _package(step.tb_frame) != "importlib":
            found = TracebackType(found, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return found


def _is_of_library(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith(_LIBRARIES)


def _is_ours(frame: object) -> bool:
    return _package(frame) in OUR_PACKAGES


def _package(frame: object) -> str:
    name = getattr(frame, "f_globals", {}).get("__name__", "")
    return name.partition(".")[0]
