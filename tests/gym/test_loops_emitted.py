"""Scheduled kernels, written as source, run and give what the baseline kernel gives, every bit."""

import runpy

import numpy as np
import pytest
from packages.nkigym.tests.loop_functions import (
    HALFWAY,
    attention,
    gated,
    matmul,
    rmsnorm_matmul,
    softmax,
)
from packages.nkigym.tests.loop_running import given, outputs, scheduled
from packages.nkigym.tests.loop_schedules import ATTENTION, GATED, MATMUL, RMSNORM_MATMUL, SOFTMAX

import nki_runtime
from neuroncore.program import emit
from nkigym.baseline import baseline_kernel

LONG = pytest.mark.thorough
CASES = [
    pytest.param(matmul, MATMUL, id="matmul"),
    pytest.param(softmax, SOFTMAX, id="softmax"),
    pytest.param(gated, GATED, id="gated", marks=LONG),
    pytest.param(rmsnorm_matmul, RMSNORM_MATMUL, id="rmsnorm_matmul", marks=LONG),
    pytest.param(attention, ATTENTION, id="attention", marks=LONG),
]


@pytest.mark.parametrize("function, text", CASES)
def test_the_emitted_schedule_gives_what_the_baseline_kernel_gives(function, text, tmp_path):
    start = baseline_kernel(function, *HALFWAY[function])
    program, _ = scheduled(start, text)
    file = tmp_path / "kernel.py"
    file.write_text(emit(program), "utf-8")

    with nki_runtime.use(nki="0.6"):
        got = runpy.run_path(str(file))[program.name](*given(program))

    want, *_ = outputs(start)
    assert not np.isnan(want).any()
    np.testing.assert_array_equal(np.asarray(got, np.float64), want)


def test_the_scheduled_product_is_exact():
    start = baseline_kernel(matmul, *HALFWAY[matmul])
    left, right = given(start)

    got, *_ = outputs(scheduled(start, MATMUL)[0])

    wanted = left.astype(np.int64).T @ right.astype(np.int64)
    np.testing.assert_array_equal(got, wanted.astype(left.dtype).astype(np.float64))
