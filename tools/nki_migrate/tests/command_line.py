"""`nki-migrate` in this process."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass

import pytest

from nki_migrate.cli import main


@dataclass(frozen=True)
class Result:
    """How a command ended, and what it printed."""

    exit_code: int
    stdout: str
    stderr: str


def run(*arguments: object, stdin: str | bytes = b"") -> Result:
    """The command with these arguments and this standard input."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    streams = [io.TextIOWrapper(io.BytesIO(raw), "utf-8") for raw in (given, b"", b"")]
    with pytest.MonkeyPatch.context() as patch:
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            patch.setattr(sys, name, stream)
        code = _code([str(argument) for argument in arguments])
    return Result(code, *(_text(stream) for stream in streams[1:]))


def _code(arguments: list[str]) -> int:
    try:
        return main(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
