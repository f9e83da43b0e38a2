"""Parameters keep their names: in the kernel, in its text, and as keywords of a call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nkigen_lite import compile
from nkigen_lite.tensors.errors import SpecError

X, SCALE = np.arange(12, dtype=np.float32).reshape(3, 4), np.full(4, 2, np.float32)


def scaled(x: Any, scale: Any) -> Any:
    return x * scale


def test_the_kernel_has_the_functions_parameters():
    assert "def scaled(x, scale):" in compile(scaled, X, SCALE).source


@pytest.mark.parametrize("call", [
    lambda k: k(X, SCALE), lambda k: k(X, scale=SCALE), lambda k: k(scale=SCALE, x=X),
])  # fmt: skip
def test_arguments_go_by_place_or_by_name(call):
    np.testing.assert_array_equal(call(compile(scaled, X, SCALE)), X * 2)


def test_names_that_kernels_need_are_numbered():
    def function(out: Any, nl: Any, v0: Any, *more: Any) -> Any:
        return out + nl * v0 - more[0]

    kernel = compile(function, X, X, X, X)

    assert "def function(out, nl_2, x2, x3):" in kernel.source
    np.testing.assert_array_equal(kernel(X, X, X, X), X + X * X - X)


def test_another_name_is_rejected():
    with pytest.raises(SpecError, match="other arguments by name"):
        compile(scaled, X, SCALE)(X, factor=SCALE)


def test_buffers_are_called_after_variables_and_reductions_of_rows(assert_lowers_right, normal):
    def attention(q, k, v):
        scores = q @ k.T / 8
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v

    kernel = assert_lowers_right(attention, *(normal(128, 128, seed=s) for s in range(3)))

    for name in ("scores", "row_max", "row_sum", "q_transposed", "v_matrix"):
        assert f"    {name} = nl.ndarray(" in kernel.source


def test_large_constants_are_called_after_their_variable(assert_lowers_right, normal):
    angles = normal(2000, seed=1)

    kernel = assert_lowers_right(lambda x: x * angles, normal(3, 2000))

    assert [p.name for p in kernel.program.parameters] == ["x", "angles"]
