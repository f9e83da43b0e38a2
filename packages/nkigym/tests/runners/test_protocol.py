"""Outputs of a candidate against its reference."""

import numpy as np
import pytest

from nkigym.baseline import baseline_kernel
from nkigym.runners import case_of
from nkigym.runners.protocol import wrong_output


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda want: [[1.0], [1.0, 2.0]], "output 0 is not an array"),
        (lambda want: None, "output 0 is object[], expected float32[128, 64]"),
        (lambda want: want.astype(object), "output 0 is object[128, 64]"),
        (lambda want: np.ma.masked_less(want, 0), "output 0 is a masked array"),
        (lambda want: want[:-1], "output 0 is float32[127, 64], expected float32[128, 64]"),
        (lambda want: np.where(want == want[5, 6], np.nan, want), "first at [5, 6]"),
    ],
)
def test_an_output_of_another_form_or_value_is_named(change, what):
    root = baseline_kernel(lambda a, b: a * b, "f32[128,64]", "f32[128,64]")
    case = case_of("a", root, root, 0.0)

    assert wrong_output(case, case.expected) is None
    assert what in str(wrong_output(case, [change(case.expected[0])]))
