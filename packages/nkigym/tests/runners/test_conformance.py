"""One suite for every backend that runs kernels: the values of each function, within rounding.

pytest packages/nkigym/tests/runners/test_conformance.py          interpreter and generator
pytest -m hw packages/nkigym/tests/runners/test_conformance.py    a device
"""

import numpy as np
import pytest
from packages.nkigym.tests.loop_functions import SMALL

from neuroncore.program import execute_program
from nkigen_lite import compile
from nkigym.baseline import baseline_kernel
from nkigym.runners import Interpreter, Neuron, case_of

FUNCTIONS = {function.__name__: (function, specs) for function, specs in SMALL.items()}
GAPS = {
    # (backend, function): the reason why it does not conform yet
}


def by_generator(case, root, function, specs, tmp_path):
    """The generated kernel's values against the baseline kernel's."""
    outputs = execute_program(compile(function, *specs).program, [a.copy() for a in case.inputs])
    found = []
    Interpreter().measure([case], found.append)
    for got, want in zip(outputs, case.expected, strict=True):
        scale = np.abs(want.astype(np.float64)).max()
        np.testing.assert_allclose(
            got.astype(np.float64), want.astype(np.float64), rtol=0, atol=0.02 * scale
        )
    return found


def by_interpreter(case, root, function, specs, tmp_path):
    found = []
    Interpreter().measure([case], found.append)
    return found


def by_device(case, root, function, specs, tmp_path):
    found = []
    Neuron(case.program.target, tmp_path / "artefacts").measure([case], found.append)
    return found


BACKENDS = [by_interpreter, by_generator, pytest.param(by_device, marks=pytest.mark.hw)]


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.__name__)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_output_is_that_of_the_baseline_kernel(backend, name, tmp_path, request):
    function, specs = FUNCTIONS[name]
    if reason := GAPS.get((backend.__name__, name)):
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    root = baseline_kernel(function, *specs)

    (found,) = backend(case_of(name, root, root, 0.0), root, function, specs, tmp_path)

    assert (found.status, found.what) == ("ok", "")
