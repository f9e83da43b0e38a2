"""Every command with `--report` writes a page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from members import ROOT

MLP = "import numpy as np\ndef mlp(x, w):\n    return np.maximum(x @ w, 0)\n"
SPECS = ("--spec", "f32[64,128]", "--spec", "w=f32[128,256]")
STREAM = str(ROOT / "examples" / "tokenplan" / "stream.py") + ":stream_kernel"
COMMANDS = {
    "nkigen": (("nkigen", "mlp.py:mlp", *SPECS), 1, "Passes"),
    "nkigym": (("nkigym", "tune", "mlp.py:mlp", *SPECS, "--budget", "4"), 2, "Schedule"),
    "tokenplan": (("tokenplan", "explain", STREAM, "--spec", "f32[512,256]"), 1, "Tokens"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_writes_its_kernels_and_its_explanation(name, tmp_path, data_of):
    words, kernels, title = COMMANDS[name]
    (tmp_path / "mlp.py").write_text(MLP)
    program = str(Path(sys.executable).parent / words[0])
    done = subprocess.run((program, *words[1:], "--report", "page.html"), cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip

    assert done.returncode == 0, done.stderr
    document, _ = data_of(tmp_path / "page.html")
    assert len(document["kernels"]) == kernels
    assert title in [name for name, _ in document["texts"]]


def test_a_migration_is_shown_side_by_side(tmp_path, data_of):
    old = ROOT / "examples" / "beta1" / "masked_add.py"
    program = str(Path(sys.executable).parent / "nki-migrate")
    words = ("fix", str(old), "--output-dir", str(tmp_path), "--report", str(tmp_path / "m.html"))
    done = subprocess.run((program, *words), capture_output=True, text=True)

    assert "--report wrote" in done.stderr
    (file,) = data_of(tmp_path / "m.html")[0]["migrations"]
    new = (tmp_path / "masked_add.py").read_text("utf-8").splitlines()
    assert [row[2] for row in file["rows"] if row[1]] == old.read_text("utf-8").splitlines()
    assert [row[4] for row in file["rows"] if row[3]] == new
    assert file["rules"]
