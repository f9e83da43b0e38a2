"""The standard streams of a command: a reader that has left, a full disk, a closed descriptor."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from typing import Any, Protocol, TextIO

CLOSED_PIPE = 141
"""The exit code where the reader of stdout has left, as a shell reports SIGPIPE; nothing is said,
as of other commands in `… | head`."""
UNWRITABLE = 2
_STDOUT = "<stdout>"


class Main(Protocol):
    """The function of a command: the exit code of a command line, or SystemExit."""

    def __call__(self, argv: Sequence[str] | None = None) -> int: ...


def command_line(program: str) -> Callable[[Callable[[Sequence[str] | None], int]], Main]:
    """A decorator of `main(argv=None)`: without `argv` it is the whole process and has its streams.

    A failure of stdout ends it with CLOSED_PIPE, or with a message and UNWRITABLE; what cannot be
    written on stderr is lost, which changes no exit code.
    """

    def decorate(main: Callable[[Sequence[str] | None], int]) -> Main:
        @wraps(main)
        def run(argv: Sequence[str] | None = None) -> int:
            if argv is not None:
                return main(argv)
            with _streams(program):
                return main(None)

        return run

    return decorate


@contextmanager
def stdout_of_user() -> Iterator[None]:
    """What is printed is on stderr, by a file of its own that may be closed: stdout has results
    alone.
    """
    file = io.TextIOWrapper(
        io.BufferedWriter(_Errors(os.dup(2), "wb")),
        "utf-8",
        "backslashreplace",
        line_buffering=True,
    )
    with file, redirect_stdout(file):
        yield


def is_of_stdout(error: BaseException) -> bool:
    """Whether writing to stdout raised it."""
    return isinstance(error, OSError) and error.filename == _STDOUT


@contextmanager
def _streams(program: str) -> Iterator[None]:
    _open_missing()
    ours = sys.stdout = _with(sys.stdout, _Output)
    sys.stderr = _with(sys.stderr, _Errors)
    vars(sys).update(__stdout__=sys.stdout, __stderr__=sys.stderr)
    try:
        try:
            yield
        finally:
            for stream in {id(each): each for each in (ours, sys.stdout)}.values():
                _flush(stream)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # of an argument; `Path.is_file` raises it, too
            sys.stderr.write(f"{program}: {error.filename}: {error.strerror}\n")
            raise SystemExit(UNWRITABLE) from None
        if not is_of_stdout(error):
            raise
        raise SystemExit(unwritable(program, error)) from None


def unwritable(program: str, error: OSError) -> int:
    """The exit code where stdout cannot be written; a reason is on stderr."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what is flushed at exit
    if error.errno == errno.EPIPE:
        return CLOSED_PIPE
    sys.stderr.write(f"{program}: stdout: {error.strerror}\n")
    return UNWRITABLE


def _flush(stream: Any) -> None:
    """Flush a stream, which a program may have closed, detached or replaced by any object."""
    try:
        stream.flush()
    except Exception as error:
        if is_of_stdout(error):
            raise


def _open_missing() -> None:
    """Open /dev/null for closed descriptors, which the next files would otherwise become."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = os.O_RDONLY if name == "stdin" else os.O_WRONLY
            if (opened := os.open(os.devnull, mode)) != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


class _Output(io.FileIO):
    """An error of writing has this file's name, by which it is told from errors of other files."""

    def write(self, data: Any) -> int | None:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = _STDOUT
            raise


class _Errors(io.FileIO):
    def write(self, data: Any) -> int | None:
        try:
            return super().write(data)
        except OSError:
            return len(data)


def _with(stream: TextIO, kind: type[io.FileIO]) -> TextIO:
    """The stream of Python's on a file of another kind; as it is where it is not Python's."""
    buffer = getattr(stream, "buffer", None)
    raw = getattr(buffer, "raw", buffer)
    if not isinstance(stream, io.TextIOWrapper) or type(raw) is not io.FileIO:
        return stream
    file = kind(stream.fileno(), "wb", closefd=False)
    file.name = stream.name
    made = io.TextIOWrapper(
        file if raw is buffer else io.BufferedWriter(file), stream.encoding,
        "backslashreplace" if stream.errors == "strict" else stream.errors,
        line_buffering=stream.line_buffering, write_through=stream.write_through,
    )  # fmt: skip
    vars(made)["mode"] = stream.mode
    return made
