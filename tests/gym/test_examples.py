"""The examples of examples/gym: searched, written, checked, reported, and what NumPy computes."""

from __future__ import annotations

import runpy
import subprocess
import sys

import numpy as np
import pytest
from members import ROOT

from nkigym import tune
from nkigym.tuning.execution import run_source

EXAMPLES = sorted((ROOT / "examples" / "gym").glob("*.py"))
EVERY = pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)

ROUNDING = 2.0**-7
"""Of the largest element: a few roundings to bfloat16 [8 significant bits] of what is between."""


@EVERY
def test_an_example_becomes_faster_and_gives_what_numpy_gives(file):
    example = runpy.run_path(str(file))
    function = example[file.stem]

    tuned = tune(function, *example["SMALL"], budget=200)

    assert tuned.report.candidates == 200
    assert tuned.report.best_ns < tuned.report.root_ns
    assert not [check for check in tuned.checks if check.passed is False]
    random = np.random.default_rng(11)
    inputs = [
        random.standard_normal(buffer.shape).astype(buffer.dtype.storage)
        for buffer in tuned.root.parameters
    ]
    output, *_ = run_source(tuned.source, tuned.program, inputs)
    wanted = function(*(array.astype(np.float64) for array in inputs))
    assert output.shape == wanted.shape
    assert np.abs(output - wanted).max() <= ROUNDING * np.abs(wanted).max()


@pytest.mark.parametrize("file", EXAMPLES[:1], ids=lambda file: file.stem)
def test_an_example_runs_as_a_program(file):
    command = [sys.executable, str(file), "--small"]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "executed, real size: ok" in done.stdout
    assert "@nki.jit" in done.stdout
    assert done.stderr == ""


@pytest.mark.thorough
@EVERY
def test_an_example_becomes_three_times_as_fast_at_its_real_size(file):
    """As the baseline kernel; less where that takes at most two and a half times its bytes."""
    example = runpy.run_path(str(file))

    tuned = tune(example[file.stem], *example["SPECS"], budget=1000)

    wanted = {"softmax": 2.4, "tensor_add": 2}.get(file.stem, 3)
    assert tuned.baseline_ns is not None and tuned.baseline_ns / tuned.report.best_ns >= wanted
    assert tuned.checks[-1].passed
