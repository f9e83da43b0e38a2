"""The main job, on the examples: 0.1 kernels become 0.6 kernels that compute the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from members import ROOT


def fix(folder: str, output: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """`nki-migrate fix examples/FOLDER --verify`: the exit code and the JSON report."""
    command = (sys.executable, "-m", "nki_migrate", "fix", f"examples/{folder}", "--verify")
    target = ("--output-dir", str(output), "--output-format", "json", "--self-check")

    done = subprocess.run((*command, *target, *options), cwd=ROOT, capture_output=True, text=True)

    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, dict[str, Any]]:
    output = tmp_path_factory.mktemp("migrated")
    return output, *fix("beta1", output)


def test_the_nine_examples_are_complete_and_equal(migrated):
    _, code, report = migrated

    assert code == 0
    rows = {row["kernel"]: row for row in report["verify"]}
    assert set(rows) == {
        "flash_attention_kernel",
        "masked_add_kernel",
        "matmul_tiled_kernel",
        "maxpool_kernel",
        "rmsnorm_kernel",
        "rope_kernel",
        "selective_scan_kernel",
        "softmax_kernel",
        "transpose_kernel",
    }
    assert all(row["equal"] and row["todos"] == 0 and row["rules"] > 0 for row in rows.values())


def test_migrated_examples_are_plain_0_6_kernels(migrated):
    output, _, _ = migrated

    for path in output.glob("*.py"):
        text = path.read_text()
        assert "neuronxcc" not in text and "TODO" not in text
        assert "nl.load" not in text and "nl.arange" not in text and "mask=" not in text


def test_migrating_the_result_again_changes_nothing(migrated):
    output, _, _ = migrated
    before = {path: path.read_bytes() for path in output.iterdir()}
    command = (sys.executable, "-m", "nki_migrate", "fix", str(output), "-q")

    assert subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0

    assert {path: path.read_bytes() for path in output.iterdir()} == before


def test_what_must_stay_a_todo_is_one_and_is_reported(tmp_path):
    code, report = fix("beta1_todo", tmp_path)

    (file,) = (entry for entry in report["files"] if entry["kernels"])
    manual = [finding["rule"] for finding in file["findings"] if finding["safety"] == "manual"]
    assert code == 1
    assert manual == ["NKI1172"]
    assert "# TODO(nki-migrate NKI1172)" in (tmp_path / Path(file["path"]).name).read_text()
    assert [row["equal"] for row in report["verify"]] == [False]
