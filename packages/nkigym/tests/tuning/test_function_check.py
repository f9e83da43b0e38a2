"""Kernels of other functions are found, kernels of the same function are not."""

from itertools import islice
from types import FunctionType

import numpy as np
import pytest
from members import ROOT
from packages.nkigym.tests.function_mutants import are_distinct, function, mutants

from nkigym.tuning.function_check import compare_with_function
from nkigym.tuning.loading import load_kernel
from nkigym.tuning.task import problem

MEAN_SQUARE = "np.mean(x * x, axis=-1, keepdims=True)"

WRONG = {
    "clip at 5": ("np.clip(x, -5, 5)", "x"),
    "clip at 50": ("np.clip(x, -50, 50)", "x"),
    "clip at 1000": ("np.clip(x, -1000, 1000)", "x"),
    "one limit of two": ("np.clip(x, -5, 5)", "np.minimum(x, 5)"),
    "clip of a product": ("np.clip(0.01 * x * w, -20, 20)", "0.01 * x * w"),
    "maximum with a large constant": ("np.maximum(x, 3000)", "x"),
    "minimum with a large constant": ("np.minimum(x, 30000)", "x"),
    "side of a relu": ("np.maximum(x, 0)", "np.minimum(x, 0)"),
    "threshold": ("np.where(x > 7, x, w)", "np.where(x > 7.25, x, w)"),
    "threshold below one": ("np.where(x > 0.03, x, w)", "np.where(x > 0.04, x, w)"),
    "strict comparison": ("np.where(x >= 300, w, x * 2)", "np.where(x > 300, w, x * 2)"),
    "difference": ("x - w", "w - x"),
    "quotient": ("x / (np.abs(w) + 1)", "w / (np.abs(x) + 1)"),
    "summand 1e-6": (f"x / np.sqrt({MEAN_SQUARE} + 1e-6)", f"x / np.sqrt({MEAN_SQUARE})"),
    "summand 1e-12": ("x / (np.abs(w) + 1e-12)", "x / np.abs(w)"),
    "floor": ("np.floor(x / 3)", "x / 3"),
    "remainder": ("x % 1", "x * 0"),
    "root of negative numbers": ("np.sqrt(np.abs(x))", "np.sqrt(x)"),
    "logarithm of negative numbers": ("np.where(x > 0, np.log(np.abs(x)), 7)", "np.log(x)"),
    "threshold of maxima": (
        "np.where(np.max(x, axis=-1, keepdims=True) > 30, x, w)",
        "np.where(np.max(x, axis=-1, keepdims=True) > 25, x, w)",
    ),
    "threshold of means": (
        "x * (np.mean(x, axis=0, keepdims=True) > 2)",
        "x * (np.mean(x, axis=0, keepdims=True) > 2.5)",
    ),
    "sigmoid": ("1 / (1 + np.exp(-x))", "1 / (1 + np.exp(x))"),
}


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize(("right", "wrong"), WRONG.values(), ids=WRONG)
def test_a_mistake_beyond_or_beside_a_constant_is_found(right, wrong, dtype):
    root, reference = kernel(right, dtype)

    assert compare_with_function(root, reference).passed
    assert compare_with_function(kernel(wrong, dtype)[0], reference).passed is False


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("np.exp(x.astype(bf16).astype(np.float32))", "np.exp(x)"),
        ("np.exp(x).astype(bf16) * w", "np.exp(x) * w"),
        ("np.exp(x)", "np.exp(x).astype(bf16).astype(np.float32)"),
    ],
    ids=["of an argument is missing", "of a result is missing", "is added"],
)
def test_a_wrong_cast_is_found(right, wrong):
    assert compare_with_function(*kernel(right, "f32")).passed
    assert compare_with_function(kernel(wrong, "f32")[0], kernel(right, "f32")[1]).passed is False


@pytest.mark.parametrize("seed", range(4))
def test_random_functions_pass_and_their_mutants_are_found(seed):
    for mutant in islice(filter(are_distinct, mutants(seed)), 3):
        root, reference = kernel(mutant.right, mutant.dtype)

        assert compare_with_function(root, reference).passed is not False, mutant
        wrong, _ = kernel(mutant.wrong, mutant.dtype)
        assert compare_with_function(wrong, reference).passed is False, mutant


RIGHT = {
    "layer_norm": ("f32[130, 96]", "f32[96]", "f32[96]"),
    "column_sums": ("f32[256, 128]",),
    "standardised": ("f32[256, 128]",),
    "extremes": ("f32[130, 150]",),
    "mean_and_variance": ("f32[256, 128]",),
    "residual_norm": ("bf16[130, 96]", "bf16[130, 96]", "bf16[96]"),
    "product": ("bf16[200, 150]", "bf16[150, 100]"),
    "heads": ("bf16[128, 64]", "bf16[64, 64]"),
    "log_sum_exp": ("f32[100, 500]",),
    "rotary": ("f32[128, 16]", "f32[128, 8]", "f32[128, 8]"),
}
"""Functions of docs/search.md, at small sizes."""


@pytest.mark.parametrize("name", RIGHT)
def test_the_kernel_of_a_documented_function_passes(name):
    file = f"{ROOT}/benchmarks/gym_functions.py:{name}"
    documented, specs = load_kernel(file, RIGHT[name], None, None)
    assert isinstance(documented, FunctionType)
    made = problem(documented, specs, None, None)

    assert made.reference is not None and compare_with_function(made.root, made.reference).passed


@pytest.mark.parametrize(
    "text", ["np.where(x * 0.1 > 0.3, x, -x)", "np.tanh(np.round(np.sin(x)) / 8)"]
)
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_a_comparison_that_rounding_decides_is_not_a_mistake(text, dtype):
    """Whether 0.3 is exceeded; what the sine of a million is."""
    assert compare_with_function(*kernel(text, dtype)).passed


@pytest.mark.parametrize("text", ["np.argsort(x, axis=-1) + w", "w + x.argsort(axis=1)"])
def test_of_equal_elements_the_first_is_before_the_others(text):
    root, reference = kernel(text, "f32")

    assert compare_with_function(root, reference).passed
    mistaken, _ = kernel(text.replace("(x,", "(-x,").replace("x.arg", "(-x).arg"), "f32")
    assert compare_with_function(mistaken, reference).passed is False


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_a_norm_that_overflows_in_float32_is_right(dtype, axis):
    text = f"w + x / np.linalg.norm(x, axis={axis}, keepdims=True)"
    root, reference = kernel(text, dtype)

    assert compare_with_function(root, reference).passed
    mistaken, _ = kernel(text.replace(f"axis={axis}", f"axis={1 - axis}"), dtype)
    assert compare_with_function(mistaken, reference).passed is False


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
def test_rounding_beside_a_jump_is_right(dtype):
    assert compare_with_function(*kernel("np.floor(x / w)", dtype)).passed


def test_a_function_that_loses_its_digits_at_integers_is_compared_at_fractions():
    root, wave = kernel("np.sin(2 * np.pi * x)", "f32")

    assert compare_with_function(root, wave).passed
    assert compare_with_function(root, lambda given: [1.1 * wave(given)[0]]).passed is False


def test_a_function_without_digits_in_float32_is_not_checked():
    verdict = compare_with_function(*kernel("np.sin(x * 0.1 * 2.0**60)", "f32"))

    assert verdict == (None, "roundings decide most elements of output 0")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda array: np.ma.masked_less(array, 0), "a masked array"),
        (lambda array: array.astype(object), "an array of object"),
        (lambda array: array.astype(complex), "an array of complex128"),
        (lambda array: array.astype(str), "an array of str1024"),
        (lambda array: None, "an array of object"),
    ],
)
def test_an_output_that_is_not_an_array_of_numbers_is_named(change, what):
    root, product = kernel("x * w", "f32")

    verdict = compare_with_function(root, lambda given: [change(product(given)[0])])

    assert verdict == (None, f"output 0 of the function is {what}, not an array of numbers")


def kernel(text, dtype):
    """The kernel of a function of x and w, and the function."""
    written = function(text)
    made = problem(written, [f"{dtype}[128,64]"] * 2, None, None)
    return made.root, lambda arrays: [written(*arrays)]
