"""`fix` interrupted at any moment leaves every file whole: old or new, never between."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
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


def fix_and_send(root: Path, number: signal.Signals, delay: float, jobs: int) -> int:
    """Start `fix`, wait until the first file is new, wait a little more, and send the signal."""
    command = [sys.executable, "-m", "nki_migrate", "fix", ".", "-q", "-j", str(jobs)]
    process = subprocess.Popen(
        command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        while process.poll() is None and (root / "k000.py").read_text() == OLD:
            time.sleep(0.001)
        time.sleep(delay)
        os.killpg(process.pid, number)  # to the workers too, as a terminal does
        process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode


def states(paths: list[Path]) -> set[str]:
    texts = {path.read_text() for path in paths}
    return {{OLD: "old", NEW: "new"}.get(text, "broken") for text in texts}


@pytest.mark.parametrize(
    ("number", "jobs"), [(signal.SIGINT, 1), (signal.SIGINT, 2), (signal.SIGTERM, 1)]
)
def test_an_interruption_leaves_whole_files_and_no_temporary(tmp_path, number, jobs):
    rng = random.Random(jobs)
    met: set[str] = set()
    for _ in range(3):
        paths = tree(tmp_path)

        code = fix_and_send(tmp_path, number, rng.uniform(0, 0.03), jobs)

        assert code in (0, 130)
        met |= states(paths)
        assert sorted(tmp_path.iterdir()) == paths
    assert met == {"old", "new"}  # at least one run was cut in its middle


def test_a_kill_leaves_whole_files(tmp_path):
    rng = random.Random(0)
    met: set[str] = set()
    for _ in range(3):
        paths = tree(tmp_path)

        fix_and_send(tmp_path, signal.SIGKILL, rng.uniform(0, 0.03), jobs=1)

        met |= states(paths)
    assert met == {"old", "new"}
