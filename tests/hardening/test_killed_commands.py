"""A command that is killed at any moment leaves every file as it was or as it becomes."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.hardening.test_malformed_inputs import KERNEL

SEED = 25
FILES = 12
MIGRATED = KERNEL.replace("nl.affine_range", "range")


def killed_after(seconds: float, folder: Path) -> None:
    """Start `fix` of the folder with a report, and kill it after so long."""
    command = [sys.executable, "-m", "nki_migrate", "fix", ".", "--output-file", "report.json"]
    options = ["--output-format", "json", "--exit-zero", "-j", "1"]
    with subprocess.Popen([*command, *options], cwd=folder, stderr=subprocess.DEVNULL) as process:
        time.sleep(seconds)
        process.kill()


def survives(folder: Path, count: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        for number in range(FILES):
            (folder / f"k{number}.py").write_text(KERNEL)
        killed_after(rng.uniform(0.2, 1.6), folder)
        assert {path.read_text() for path in folder.glob("k*.py")} <= {KERNEL, MIGRATED}
        report = folder / "report.json"
        assert not report.exists() or report.read_text().endswith("}\n")


def test_a_killed_fix_leaves_whole_files(tmp_path: Path):
    survives(tmp_path, 5, SEED)


@pytest.mark.thorough
def test_a_fix_killed_200_times_leaves_whole_files(tmp_path: Path):
    survives(tmp_path, 200, SEED + 1)
