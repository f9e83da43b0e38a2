"""`nkigen` in a folder with NumPy programs of a few lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from nkigen_lite.cli import main

PROGRAM = """\
import numpy as np


def line(x):
    return x * 2 + 1


def scaled(x, w, b=None):
    return x * w if b is None else x * w + b


def gated(x, w):
    return np.tanh(x @ w), x.max(-1)


def factorial(x):
    return x.prod(-1)


def by_value(x):
    return x if x[0] > 0 else -x


def counted(n: int):
    return n + 1


def several(*arrays):
    return arrays[0]


def halved(x, y):
    y[...] = x / 2
    return x + y


def lower(x):
    return np.where(np.tri(64, dtype=bool), x, 0)


TABLE = np.linspace(0, 1, 2000, dtype=np.float32) ** 2


def tabled(x):
    return x * TABLE


NUMBER = 3


def nothing(x):
    return x, x[4:]
"""


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, with program.py; what is imported from there is forgotten again."""
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def nkigen(folder: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """The command in this process, in `folder`."""

    def run(*arguments: str) -> Said:
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = stop.code
        printed = capsys.readouterr()
        return Said(int(code or 0), printed.out, printed.err)

    return run
