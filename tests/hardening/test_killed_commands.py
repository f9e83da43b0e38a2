"""A command that is killed at any moment leaves every file as it was or as it becomes."""

from __future__ import annotations

import contextlib
import json
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hardening.test_malformed_inputs import KERNEL
from tests.programs.texts import COPY

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


def is_json(file: Path) -> bool:
    return isinstance(json.loads(file.read_text()), dict | list)


def is_page(file: Path) -> bool:
    return file.read_text().rstrip().endswith(("</html>", "</svg>"))


def is_store(file: Path) -> bool:
    """Whether SQLite reads it, after it has undone what a killed process had begun."""
    with contextlib.closing(sqlite3.connect(file)) as store:
        return store.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def is_source(file: Path) -> bool:
    return "return" in file.read_text() and bool(compile(file.read_text(), file, "exec"))


WRITERS: dict[str, tuple[tuple[str, ...], dict[str, Callable[[Path], bool]]]] = {
    "nkigym tune": (
        ("nkigym", "tune", "f.py:double", "--spec", "f32[256,8]", "--budget", "5",
         "--store", "s.db", "-o", "k.py"),
        {"s.db": is_store, "k.py": is_source},
    ),
    "nkigen": (
        ("nkigen", "f.py:double", "--spec", "f32[256,8]", "-o", "k.py"), {"k.py": is_source}
    ),
    "tokenplan explain": (
        ("tokenplan", "explain", "p.txt", "--output-format", "json", "-o", "plan.json"),
        {"plan.json": is_json},
    ),
    "nki-run --record": (
        ("nki-run", "--record", "facts.json", "run.py:copy", "f32[4,4]"), {"facts.json": is_json}
    ),
    "nki-run --trace": (
        ("nki-run", "--trace", "t.svg", "run.py:copy", "f32[4,4]"), {"t.svg": is_page}
    ),
    "nki-run --report": (
        ("nki-run", "--report", "r.html", "run.py:copy", "f32[4,4]"), {"r.html": is_page}
    ),
    "nki-migrate check": (
        ("nki-migrate", "check", "run.py", "--output-format", "sarif", "--output-file", "r.sarif"),
        {"r.sarif": is_json},
    ),
}  # fmt: skip
"""Commands that write files, and how a whole one is recognised."""


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    (tmp_path / "f.py").write_text("def double(x):\n    return x + x\n")
    (tmp_path / "p.txt").write_text(COPY)
    (tmp_path / "run.py").write_text(KERNEL.replace("range(4)", "range(1)"))
    return tmp_path


def writes_whole_files(folder: Path, name: str, count: int) -> None:
    """Kill the command at random moments of the time that it takes."""
    (program, *options), whole = WRITERS[name]
    command = [Path(sys.executable).with_name(program), *options]
    rng = random.Random(f"{SEED} {name}")
    began = time.monotonic()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    seconds = time.monotonic() - began
    assert done.returncode in (0, 1), done.stderr
    assert all(is_whole(folder / file) for file, is_whole in whole.items())
    for _ in range(count):
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as process:  # fmt: skip
            time.sleep(rng.uniform(0, seconds))
            process.kill()
        for file, is_whole in whole.items():
            assert not (folder / file).exists() or is_whole(folder / file), file
            if is_whole is not is_store and rng.random() < 0.5:  # a store has a journal
                (folder / file).unlink(missing_ok=True)


@pytest.mark.parametrize("name", WRITERS)
def test_a_killed_command_leaves_whole_files(inputs: Path, name: str):
    writes_whole_files(inputs, name, 2)


@pytest.mark.thorough
@pytest.mark.parametrize("name", WRITERS)
def test_a_command_killed_200_times_leaves_whole_files(inputs: Path, name: str):
    writes_whole_files(inputs, name, 200)
