"""What a search of a function begins with."""

from dataclasses import replace

import numpy as np
import pytest
from packages.nkigym.tests import tuning_kernels

from neuroncore.timeline import estimate
from nkigen_lite import compile
from nkigym import tune
from nkigym.analysis.roofline import Rooflines
from nkigym.baseline import BaselineError, baseline_kernel
from nkigym.search import ConstraintError
from nkigym.tuning.task import problem
from nkigym.tuning.verification import verify_winner


def product(left, right):
    return left.T @ right


def ragged(x, y):
    return np.exp(x + y)


def column_means(x):
    return x - x.mean(axis=0, keepdims=True)


def sum_and_maximum(x, y):
    return x + y, x.max(axis=1)


def transposed(x):
    return (x * 2).T


NEW = [
    (ragged, ("f32[300,70]", "f32[300,70]")),
    (column_means, ("f32[256,128]",)),
    (sum_and_maximum, ("f32[130,600]", "f32[130,600]")),
    (transposed, ("f32[200,100]",)),
]


@pytest.mark.parametrize(("function", "specs"), NEW, ids=lambda x: getattr(x, "__name__", ""))
def test_a_function_without_a_baseline_kernel_begins_with_the_generated_one(function, specs):
    with pytest.raises(BaselineError):
        baseline_kernel(function, *specs)

    tuned = tune(function, *specs, budget=20)

    assert tuned.root == compile(function, *specs).program
    assert tuned.report.best_ns <= tuned.report.root_ns
    assert tuned.baseline_ns is None
    assert [each.passed for each in tuned.checks if each.name == "function"] == [True]


def test_a_search_begins_with_the_generated_kernel_and_has_the_baseline_beside_it():
    specs = tuning_kernels.PRODUCT

    tuned = tune(product, *specs, budget=50)

    assert tuned.root == compile(product, *specs).program
    assert (
        tuned.baseline_ns == estimate(baseline_kernel(product, *specs), mode="as_written").total_ns
    )
    assert tuned.gap_removed is not None
    bound_ns = max(Rooflines("trn2", tuned.root.nki).of(tuned.root).values())
    best_ns = tuned.report.root_ns - tuned.gap_removed * (tuned.report.root_ns - bound_ns)
    assert best_ns == pytest.approx(estimate(tuned.program, mode="as_written").total_ns)
    assert best_ns < tuned.report.root_ns


def test_the_best_start_is_the_faster_kernel():
    specs = tuning_kernels.PRODUCT
    roots = [
        tune(product, *specs, budget=5, start=s).report.root_ns for s in ("baseline", "generated")
    ]

    assert tune(product, *specs, budget=5, start="best").report.root_ns == min(roots)


def test_an_unknown_start_is_rejected():
    with pytest.raises(ConstraintError, match="'fastest' is not a start"):
        tune(product, *tuning_kernels.PRODUCT, start="fastest")


def test_a_root_that_is_not_its_function_is_found():
    root = baseline_kernel(ragged, "f32[128,64]", "f32[128,64]")

    with pytest.raises(Exception, match="output 0 is not that of the function"):
        verify_winner(
            root, root, (), lambda: iter(()), lambda arrays: [np.exp(np.subtract(*arrays))]
        )


def listed(x):
    return [x + 1, x * 3]


def changed(x):
    x += 1
    return x * 2


def changed_and_returned(x, y):
    y[0:16] = x[0:16] * 2
    x -= y
    return x, y + x


def changed_alone(x, y):
    x *= y


def changed_twice(x):
    x += 1
    return x * 1, x * 1, x


def without_elements(x, y):
    return x + y.sum(), y


def number(x, scale):
    return x * scale, scale + 1


@pytest.mark.parametrize(
    ("function", "specs"),
    [
        (listed, ("f32[300,200]",)),
        (listed, ("f32[128,128]",)),
        (changed, ("f32[300,200]",)),
        (changed, ("bf16[128,128]",)),
        (changed_and_returned, ("f32[130,64]", "f32[130,64]")),
        (changed_alone, ("f32[256,128]", "f32[256,128]")),
        (changed_twice, ("i32[64,32]",)),
        (without_elements, ("f32[64,32]", "f32[0,4]")),
        (number, ("f32[64,32]", "f32[]")),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
@pytest.mark.parametrize("start", ["generated", "baseline"])
def test_what_a_function_returns_and_changes_is_compared_with_its_kernel(function, specs, start):
    tuned = tune(function, *specs, budget=20, start=start)

    assert [each.passed for each in tuned.checks if each.name == "function"] == [True]


def test_another_number_of_results_is_found():
    made = problem(listed, ("f32[128,64]",), None, None)
    other = replace(made, function=lambda x: x + 1)

    with pytest.raises(Exception, match="function: FAILED, 2 outputs, 1 of the function"):
        verify_winner(made.root, made.root, (), lambda: iter(()), other.reference)


def test_an_argument_that_a_kernel_changes_otherwise_is_found():
    made = problem(changed, ("f32[128,64]",), None, None)
    other = replace(made, function=lambda x: np.add(x, 1) * 2)

    with pytest.raises(Exception, match="output 1 is not that of the function"):
        verify_winner(made.root, made.root, (), lambda: iter(()), other.reference)
