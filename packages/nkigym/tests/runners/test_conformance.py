"""One suite for every backend that runs kernels: the values of each function, within rounding.

pytest packages/nkigym/tests/runners/test_conformance.py          interpreter and generator
pytest -m hw packages/nkigym/tests/runners/test_conformance.py    a device

The target is that of NEURON_PLATFORM_TARGET_OVERRIDE, without it trn2.
"""

import os
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from packages.nkigym.tests.loop_functions import SMALL

from neuroncore.targets import resolve_target
from nkigen_lite import compile
from nkigym.analysis.rounding import relative_rounding
from nkigym.baseline import baseline_kernel
from nkigym.runners import Interpreter, Neuron, case_of

pytest_plugins = ["pytester"]
FUNCTIONS = {function.__name__: (function, specs) for function, specs in SMALL.items()}
GAPS: dict[tuple[str, str], str] = {}
"""(backend, function): the reason why it does not conform yet, such as
("device", "two"): "int8 outputs come back as an opaque dtype"."""


def by_interpreter(case, function, specs, tmp_path):
    return [*measured(Interpreter(), case)]


def by_generator(case, function, specs, tmp_path):
    """The generated kernel instead of the baseline kernel."""
    program = compile(function, *specs, target=case.program.target).program
    relative = max(case.relative, relative_rounding(program))
    return [*measured(Interpreter(), replace(case, program=program, relative=relative))]


def by_device(case, function, specs, tmp_path, devices=Path("/dev")):
    runner = Neuron(case.program.target, tmp_path / "artefacts", devices=devices)
    return [*measured(runner, case)]


def measured(runner, case):
    found = []
    runner.measure([case], found.append)
    return found


BACKENDS = {"interpreter": by_interpreter, "generator": by_generator, "device": by_device}


def suite(backends, names, gaps):
    """Every backend with every function; where there is a gap, a failure is expected."""
    return [
        pytest.param(backend, name, id=f"{label}-{name}", marks=[*marks(label, name, gaps)])
        for (label, backend), name in product(backends.items(), names)
    ]


def marks(label, name, gaps):
    if label == "device":
        yield pytest.mark.hw
    if reason := gaps.get((label, name)):
        yield pytest.mark.xfail(reason=reason, strict=True)


@pytest.mark.parametrize(("backend", "name"), suite(BACKENDS, FUNCTIONS, GAPS))
def test_every_output_is_that_of_the_function_in_float64(backend, name, tmp_path):
    target = resolve_target(os.environ.get("NEURON_PLATFORM_TARGET_OVERRIDE", "trn2")).name
    function, specs = FUNCTIONS[name]
    root = baseline_kernel(function, *specs, target=target)
    case = case_of(name, root, root, 0.0)
    results = function(*(array.astype(np.float64) for array in case.inputs))
    exact = results if isinstance(results, tuple) else (results,)
    rounded = (np.asarray(e).astype(o.dtype) for e, o in zip(exact, case.expected, strict=True))

    (found,) = backend(replace(case, expected=tuple(rounded)), function, specs, tmp_path)

    assert (found.status, found.what) == ("ok", "")


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_a_device_gets_kernels_for_the_target_that_is_named(
    target, vendor, devices, tmp_path, monkeypatch
):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)

    test_every_output_is_that_of_the_function_in_float64(
        partial(by_device, devices=devices), next(iter(FUNCTIONS)), tmp_path
    )

    (log,) = tmp_path.glob("artefacts/*/log.txt")
    assert f"compiling kernel for {target}" in log.read_text()


def test_every_gap_is_of_a_backend_and_a_function():
    assert GAPS.keys() <= {*product(BACKENDS, FUNCTIONS)}


PLANTED = """
import pytest
from packages.nkigym.tests.runners.test_conformance import suite

def equal():
    pass

def wrong():
    raise AssertionError

GAPS = {("wrong", "f"): "not yet", ("equal", "f"): "closed since"}

@pytest.mark.parametrize(
    ("backend", "name"), suite({"wrong": wrong, "equal": equal}, ["f", "g"], GAPS)
)
def test_values(backend, name):
    backend()
"""


def test_a_gap_is_an_expected_failure_and_one_that_passes_fails(pytester):
    pytester.makepyfile(PLANTED)

    found = pytester.runpytest_inprocess("-rxf", "-p", "no:cacheprovider")

    found.assert_outcomes(xfailed=1, failed=2, passed=1)
    found.stdout.fnmatch_lines(["*XPASS(strict)* closed since"])
    found.stdout.fnmatch_lines(["XFAIL *wrong-f? - not yet"])
    found.stdout.fnmatch_lines_random(["FAILED *wrong-g?*", "FAILED *equal-f?*"])
