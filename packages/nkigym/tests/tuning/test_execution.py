"""Kernels that are compared to the bit do not depend on how a schedule cuts products."""

import numpy as np
import pytest
from packages.nkigym.tests.loop_functions import matmul

from neuroncore.program import emit
from nkigym.baseline import baseline_kernel
from nkigym.transforms import TransformError, apply, opportunities
from nkigym.tuning.execution import difference, run_program, run_source


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_product_cut_in_narrower_ones_is_the_same_to_the_bit(rng, dtype):
    start = baseline_kernel(matmul, f"{dtype}[128, 128]", f"{dtype}[128, 512]")
    arrays = [
        rng.normal(size=buffer.shape).astype(buffer.dtype.storage) for buffer in start.parameters
    ]
    wanted = run_program(start, arrays)

    narrower = list(_narrowed(start))

    assert len(narrower) > 2
    for program in narrower:
        assert difference(run_program(program, arrays), wanted) is None
        assert difference(run_source(emit(program), program, arrays), wanted) is None


def test_a_kernel_leaves_no_folder_and_removes_that_of_a_killed_process(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    abandoned = tmp_path / "nkigym-killed"
    abandoned.mkdir()
    (abandoned / ".nki-run").touch()
    (abandoned / "kernel.py").touch()
    start = baseline_kernel(lambda x: x * 2.0, "f32[8, 8]")

    run_source(emit(start), start, [np.ones((8, 8), np.float32)])

    assert [*tmp_path.iterdir()] == []


def _narrowed(start):
    """Programs whose product is cut: in two, and again."""
    for step in opportunities(start):
        if step.transform == "narrow":
            program = apply(start, step)
            yield program
            for again in opportunities(program):
                if again.transform == "narrow":
                    try:
                        yield apply(program, again)
                    except TransformError:
                        continue


@pytest.fixture
def rng():
    return np.random.default_rng(0)
