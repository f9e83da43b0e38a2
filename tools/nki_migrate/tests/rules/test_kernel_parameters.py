"""Kernels that write to an argument return it; the results are what the old kernel wrote."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

import nki_runtime
from nki_migrate.engine.processing import Task, process
from nki_migrate.engine.results import FileResult
from nki_migrate.settings.request import VERSIONS, Request

TEXT = """
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit(kernel_return=False)
def kernel(x, left, right):
    tile = nl.load(x[0:8, 0:16])
    nl.store(left, value=tile[:, 0:8])
    for k in range(1):
        nl.store(right, value=tile[:, 8:16])


def main(x):
    one, other = np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32)
    kernel(x, one, right=other)
    return one, other
"""


def migrated(text: str, *, unsafe_fixes: bool = False) -> FileResult:
    request = Request(target=VERSIONS[-1], unsafe_fixes=unsafe_fixes)
    return process(Task("k.py", text.encode(), request))


def run(text: str, backend: str = "beta2") -> list[np.ndarray]:
    module = ModuleType("k")
    with nki_runtime.use(backend=backend):
        exec(compile(text, "k.py", "exec"), module.__dict__)
        return list(module.main(np.arange(128, dtype=np.float32).reshape(8, 16)))


def test_a_kernel_returns_the_parameters_that_it_writes():
    result = migrated(TEXT, unsafe_fixes=True)

    assert result.after.count("return left, right") == 1
    assert "one, other = kernel(x, one, right=other)" in result.after
    assert all(k.complete for k in result.kernels)
    for new, old in zip(run(result.after), run(TEXT, backend="beta1"), strict=True):
        np.testing.assert_array_equal(new, old)


def test_who_calls_a_kernel_elsewhere_is_an_assumption():
    result = migrated(TEXT)

    assert "callers take what `kernel` returns (--unsafe-fixes)" in result.after
    assert not all(k.complete for k in result.kernels)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("    tile = nl.load", "    left = left.reshape((8, 8))\n    tile = nl.load"),
        (
            "    for k in range(1):",
            "    if x.shape[0] > 8:\n        return left\n    for k in range(1):",
        ),
    ],
    ids=["bound anew", "something else returned"],
)
def test_other_stores_to_parameters_are_left_to_a_person(line, instead):
    result = migrated(TEXT.replace(line, instead), unsafe_fixes=True)

    assert "change the callers" in result.after
    assert not all(k.complete for k in result.kernels)
