"""`nki-migrate pr`: a folder becomes what a pull request needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

KERNEL = """\
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def doubled(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.load(x)
    nl.store(out, nl.multiply(tile, 2.0))
    return out


@nki.jit
def lower(x):
    out = nl.ndarray((8, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    i, j = nl.mgrid[0:8, 0:8]
    nl.store(out[i, j], nl.load(x[0:8, 0:8]), mask=(i >= j))
    return out
"""
CASES = """\
schema = "nki-cases/1"

[[case]]
file = "k.py"
kernel = "doubled"
reference = "k_reference.py:doubled"
arg = [{ name = "x", dtype = "float32", shape = [8, 8] }]
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "k_reference.py").write_text("def doubled(x):\n    return x * 2\n")
    (tmp_path / "cases.toml").write_text(CASES)
    return tmp_path


def test_a_folder_gets_migrated_files_a_report_and_tests(repository):
    done = run(repository, "nki_migrate", "pr", ".", "--no-cache")

    assert done.returncode == 1, done.stderr
    assert "nisa.dma_copy" in (repository / "k.py").read_text()
    home = repository / "nki_migration"
    assert (home / "old" / "k.py").read_text() == "# nki-migrate: skip-file\n" + KERNEL
    report = (home / "REPORT.md").read_text()
    assert "| doubled | k.py | equal | " in report
    assert "| lower | k.py | to be finished | " in report
    assert report.count("NKI1172: mask `i >= j` is not a rectangle") == 1

    tests = run(repository, "pytest", "-q", "-p", "no:cacheprovider", "nki_migration")
    assert "1 passed" in tests.stdout, tests.stdout


def test_what_was_written_before_is_not_overwritten(repository):
    (repository / "nki_migration").mkdir()

    done = run(repository, "nki_migrate", "pr", ".")

    assert done.returncode == 2
    assert "nki_migration is there already" in done.stderr
    assert (repository / "k.py").read_text() == KERNEL
