"""A 0.1 kernel takes the time of the calibration program that was written after it."""

import runpy
from pathlib import Path

import pytest
from benchmarks.model.points import all_points

import nki_runtime
from neuroncore.timeline import estimate

POINTS = {point.id: point for point in all_points()}
KERNELS = [("s5", "attention"), ("m3", "selective_scan")]


@pytest.mark.parametrize(("point", "name"), KERNELS, ids=lambda k: k)
def test_a_kernel_from_its_source_takes_the_time_of_its_calibration_program(point, name):
    program = POINTS[point].build()
    specs = [(p.shape, "float32") for p in program.parameters]

    with nki_runtime.use(nki="0.1", target="trn1"):
        kernel = runpy.run_path(str(Path(__file__).with_name("calibration_kernels.py")))[name]
        found = nki_runtime.estimate(kernel, *specs)

    assert found.total_ns == pytest.approx(estimate(program).total_ns, rel=0.05)
