"""`fix` interrupted while it writes leaves every file whole: old or new, never between."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

OLD = """\
import nki
import nki.language as nl


@nki.jit
def kernel(x):
    for i in nl.affine_range(4):
        pass
    return x
"""
NEW = OLD.replace("nl.affine_range", "range")
NUM_FILES = 150


def tree(root: Path) -> list[Path]:
    paths = [root / f"k{i:03}.py" for i in range(NUM_FILES)]
    for path in paths:
        path.write_text(OLD)
    return paths


INTERRUPTED = """
import os, runpy, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
number, at, moment = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
replace, seen = os.replace, []

def replace_and_send(*given, **named):
    seen.append(given)
    if (len(seen), moment) == (at, "before"):
        os.killpg(0, number)  # the workers too, as a terminal does
    replace(*given, **named)
    if (len(seen), moment) == (at, "after"):
        os.killpg(0, number)

os.replace = replace_and_send
del sys.argv[1:4]
runpy.run_module("nki_migrate", run_name="__main__", alter_sys=True)
"""
"""`nki-migrate` that a signal interrupts while it puts a certain file in its place."""


def fix_and_send(root: Path, number: signal.Signals, at: int, moment: str, jobs: int = 1) -> int:
    """Run `fix`, with the signal before or after the file number `at` is put in its place."""
    signalled = [str(int(number)), str(at), moment]
    command = [sys.executable, "-c", INTERRUPTED, *signalled, "fix", ".", "-q", "-j", str(jobs)]
    done = subprocess.run(
        command, cwd=root, capture_output=True, start_new_session=True, timeout=120
    )
    return done.returncode


def num_new(paths: list[Path]) -> int:
    """How many files are new, the first ones; all others are old."""
    texts = [path.read_text() for path in paths]
    count = texts.count(NEW)
    assert texts == [NEW] * count + [OLD] * (len(paths) - count)
    return count


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(
    ("number", "jobs"), [(signal.SIGINT, 1), (signal.SIGINT, 2), (signal.SIGTERM, 1)]
)
def test_an_interruption_leaves_whole_files_and_no_temporary(tmp_path, number, jobs, moment):
    paths = tree(tmp_path)

    code = fix_and_send(tmp_path, number, 40, moment, jobs)

    assert code == 130
    assert num_new(paths) == 40  # the file at hand is finished first
    assert sorted(tmp_path.iterdir()) == paths


@pytest.mark.parametrize(("moment", "new"), [("before", 39), ("after", 40)])
def test_a_kill_leaves_whole_files(tmp_path, moment, new):
    paths = tree(tmp_path)

    fix_and_send(tmp_path, signal.SIGKILL, 40, moment)

    assert num_new(paths) == new
