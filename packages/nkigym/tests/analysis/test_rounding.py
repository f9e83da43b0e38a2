"""Differences that rounding explains are accepted, values of another function are not."""

import numpy as np
import pytest

from nkigym.analysis.rounding import FLOAT32, far, relative_rounding
from nkigym.baseline import baseline_kernel
from nkigym.runners import case_of
from nkigym.runners.protocol import wrong_output
from nkigym.tuning import VerificationError, verify_winner

FLOATS = ("f8e4m3", "f8e5m2", "bf16", "f16", "f32")
WRONG = {
    "zeros": np.zeros_like,
    "negated": np.negative,
    "halved": lambda a: a * np.float32(0.55),
    "larger": lambda a: a * np.float32(1.45),
    "permuted": lambda a: np.random.default_rng(1).permutation(a.ravel()).reshape(a.shape),
    "a function": np.square,
}


def kernel(dtype, factor=2.0):
    return baseline_kernel(lambda x: x * factor, f"{dtype}[128,64]")


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_other_values_are_wrong_in_every_dtype(change, dtype):
    case = case_of("1", kernel(dtype), kernel(dtype), 1.0)
    (want,) = case.expected
    other = change(want.astype(np.float32)).astype(want.dtype)

    assert wrong_output(case, [want]) is None
    assert "differs in" in str(wrong_output(case, [other]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("factor", [0.55, 1.45, -1.0, 0.0])
def test_a_kernel_of_another_function_is_rejected(dtype, factor):
    root = kernel(dtype, factor)

    with pytest.raises(VerificationError, match="output 0 is not that of the function"):
        verify_winner(root, root, [], lambda: iter(()), lambda x: x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_rounding_is_near_and_three_halves_of_a_unit_are_far(dtype):
    numpy_dtype = kernel(dtype).parameters[0].dtype.storage
    random = np.random.default_rng(29)
    exact = random.standard_normal(4096)
    rounded = exact.astype(numpy_dtype)
    steps = np.where(rounded.view(f"i{rounded.itemsize}") % 2, 1, -1).astype(np.int8)
    neighbour = (rounded.view(f"i{rounded.itemsize}") + 2 * steps).view(numpy_dtype)

    assert not far(rounded, exact, 0.0, 1 / 2).any()
    large = np.abs(exact) > 0.1
    assert far(neighbour, exact, 0.0, 1)[large].mean() > 0.9


@pytest.mark.parametrize("is_local", [False, True])
def test_differences_below_the_least_normal_float32_are_near(is_local):
    got, exact = np.array([0, 7e-39, 3e-38], np.float32), np.array([7e-39, 0, 0])

    assert far(got, exact, FLOAT32, 3 / 2, is_local).tolist() == [False, False, True]


def test_buffers_that_round_on_the_way_are_counted():
    import ml_dtypes

    def twice(x, y):
        return (np.exp(x).astype(ml_dtypes.bfloat16).T @ y).astype(ml_dtypes.bfloat16)

    assert relative_rounding(kernel("bf16")) == FLOAT32
    rounding = relative_rounding(baseline_kernel(twice, "f32[128,128]", "bf16[128,128]"))
    assert rounding == FLOAT32 + 2.0**-8


@pytest.mark.parametrize("dtype", ["i32", "u32", "i16", "u16"])
def test_integers_have_to_be_equal(dtype):
    root = baseline_kernel(lambda a: a + a, f"{dtype}[128,64]")
    checks = verify_winner(root, root, [], lambda: iter(()), lambda given: [given[0] + given[0]])
    assert all(check.passed is not False for check in checks)

    def changed(given):
        [a] = given
        return [a + a + (a == a.max())]

    with pytest.raises(VerificationError, match="output 0 is not that of the function"):
        verify_winner(root, root, [], lambda: iter(()), changed)

    case = case_of("1", root, root, 1.0)
    wrong = case.expected[0].copy()
    wrong[-1, -1] += 1
    assert "first at [127, 63]" in str(wrong_output(case, [wrong]))


def test_a_function_of_more_outputs_is_another():
    root = kernel("f32")
    with pytest.raises(VerificationError, match="1 outputs, 2 of the function"):
        verify_winner(root, root, [], lambda: iter(()), lambda given: [given[0] * 2, given[0]])
