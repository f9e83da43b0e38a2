"""What `nki-run --check` prints on a terminal and in a pipe."""

from __future__ import annotations

import io
import sys

import pytest

from neuroncore.findings import Finding
from nki_runtime.cli.check import Checker


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "no_color", "head"),
    [
        (Terminal(), "", "\x1b[31mmemory: \x1b[0mtile is read before it is written"),
        (Terminal(), "1", "memory: tile is read before it is written"),
        (io.StringIO(), "", "memory: tile is read before it is written"),
    ],
)
def test_findings_are_coloured_on_a_terminal_alone(monkeypatch, stream, no_color, head):
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(sys, "stderr", stream)
    checker = Checker("memory", "text")
    checker._report.add(Finding("memory", "tile is read before it is written"))

    assert checker.finish()

    assert stream.getvalue() == f"{head}\n\nnki-run: 1 finding (memory 1)\n"
