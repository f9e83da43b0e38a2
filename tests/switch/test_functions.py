"""`nki-run FILE.py:FUNCTION` with a real language: what other options say of the run holds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

KERNEL = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def double(x):
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.tensor_scalar(dst=tile, data=tile, op0=nl.multiply, operand0=2.0)
    result = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=result, src=tile)
    return result
"""


@pytest.mark.parametrize("name", ["kernel.py:double", "kernel:double"])
def test_a_function_is_checked_and_recorded_as_a_script_is(name, tmp_path):
    (tmp_path / "kernel.py").write_text(KERNEL)
    options = ("--check", "memory,subset", "--record", "facts.json")
    command = (sys.executable, "-m", "nki_runtime", *options, name, "x=f32[4, 8]")

    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("result 0: float32[4, 8], from -")
    assert json.loads((tmp_path / "facts.json").read_text())["kernels"][0]["kernel"] == "double"
