"""The backend `nkigen-lite`: NumPy functions under the switch."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import nki_runtime
from neuroncore.errors import LaunchError, UnsupportedError
from neuroncore.machine.backend import Backend
from nkigen_lite import BACKEND
from nkigen_lite.tensors.errors import UnsupportedFunctionError

PROGRAM = """\
import numpy as np


def scaled(x, w, power=1):
    return x * w**power


def singular(x):
    return np.linalg.svd(x)
"""
IN_NKI = """\
import nki
import nki.language as nl


@nki.jit
def kernel(x):
    return x
"""


def scaled(x, w, power=1):
    return x * w**power


@pytest.fixture
def nki_run(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "in_nki.py").write_text(IN_NKI)

    def run(*words):
        command = (sys.executable, "-m", "nki_runtime", "--backend", "nkigen-lite", *words)
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    return run


def test_it_is_a_backend_that_is_announced():
    assert isinstance(BACKEND, Backend)
    assert nki_runtime.backends()["nkigen-lite"] is BACKEND


def test_a_function_runs_as_the_kernel_of_the_choice():
    x, w = np.arange(12, dtype=np.float32).reshape(3, 4), np.full(4, 3, np.float32)

    with nki_runtime.use(backend="nkigen-lite", nki="0.3", target="trn1"):
        first = nki_runtime.simulate(scaled)(x, w)
        again = nki_runtime.simulate(scaled)(x, power=2, w=w)

    assert np.array_equal(first, 3 * x) and np.array_equal(again, 9 * x)


def test_time_is_estimated_from_specs():
    with nki_runtime.use(backend="nkigen-lite"):
        timeline = nki_runtime.estimate(scaled, ((256, 512), np.float32), ((512,), np.float32))

    assert timeline.total_ns > 0


def test_what_it_cannot_run_is_rejected():
    x = np.ones(4, np.float32)
    with nki_runtime.use(backend="nkigen-lite"):
        with pytest.raises(UnsupportedError, match="a grid of 2"):
            nki_runtime.simulate(scaled)[2](x, x)
        with pytest.raises(LaunchError, match="missing a required argument: 'w'"):
            nki_runtime.simulate(scaled)(x)
        with pytest.raises(LaunchError, match="takes arrays"):
            nki_runtime.simulate(scaled)(1.0, 2.0)
        with pytest.raises(UnsupportedFunctionError):
            nki_runtime.simulate(np.linalg.svd)(x)


def test_a_version_alone_means_a_language():
    with nki_runtime.use("beta1", nki="0.1"), nki_runtime.use(nki="0.4") as inner:
        assert inner.choice.backend == "beta2"


def test_nki_run_prints_what_the_results_are(nki_run):
    words = ("program.py:scaled", "x=f32[64, 8]", "w=bf16[8]", "power=2")
    done = nki_run("--check", "memory,capacity,subset,device,race", *words)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("result 0: float32[64, 8], from -")


def test_nki_run_rejects_at_the_line(nki_run):
    done = nki_run("program.py:singular", "f32[4, 4]")

    assert done.returncode == 1
    assert "program.py:9:12: np.linalg.svd is not translated" in done.stderr


def test_a_program_in_the_language_is_told_whose_it_is(nki_run):
    done = nki_run("in_nki.py")

    assert done.returncode == 1
    assert "nki.jit: backend nkigen-lite runs NumPy functions" in done.stderr
    assert "--backend beta2" in done.stderr
