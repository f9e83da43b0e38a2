"""What --explain says: what groups exchange, the least, why steps are unrolled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nkigen_lite.compiler.compile import compile


def two_groups(x: Any, w: Any) -> Any:
    return np.exp(np.tanh(x) @ w).sum(-1)


def test_each_group_says_what_it_reads_and_leaves():
    lines = compile(two_groups, "f32[128, 256]", "f32[256, 64]").explain().splitlines()

    (tanh,) = [line for line in lines if "= tanh" in line and line.startswith("group")]
    (product,) = [line for line in lines if "= matmul" in line and line.startswith("group")]
    assert tanh.endswith("reads 131,072 B, leaves 131,072 B")
    assert product.endswith("reads 196,608 B, leaves 32,768 B")


def test_the_cost_says_the_least_of_bytes_and_of_time():
    kernel = compile(lambda x: x * 2, "f32[128, 256]")

    assert "262144 bytes of HBM read and written; arguments and results are 262144" in (
        kernel.explain()
    )
    assert kernel.stats.bound_by == "dma"
    assert 0 < kernel.stats.bound_us < kernel.stats.predicted_us


def carries_nothing(x: Any) -> Any:
    return np.stack([np.tanh(x[t]) * x[t].sum() for t in range(20)])


def uneven(x: Any) -> Any:
    h = x[0]
    for t in range(18):
        h = np.tanh(h) * x[t * (t + 1) // 2]
    return h


def of_matrices(x: Any) -> Any:
    h = x
    for _ in range(20):
        h = np.tanh(h @ x)
    return h


@pytest.mark.parametrize(
    ("function", "spec", "why"),
    [
        (carries_nothing, "f32[20, 128]", "carry no value from one to the next"),
        (uneven, "f32[200, 128]", "take their operands from different places"),
        (of_matrices, "f32[64, 64]", "matmul is not supported"),
    ],
    ids=["carries nothing", "uneven", "of matrices"],
)
def test_repeated_steps_say_why_they_are_unrolled(function, spec, why):
    (note,) = [n for n in compile(function, spec).plan.notes if n.startswith("repeated steps")]

    assert note.startswith("repeated steps are unrolled: ")
    assert why in note


def test_every_array_has_its_traffic_and_the_least_where_more_is_moved():
    def function(x, w):
        return np.cumsum(np.exp(x) @ w, 0)

    text = compile(function, "f32[256, 3000]", "f32[3000, 3000]").explain()

    traffic = text.split("== HBM traffic ==\n")[1].split("\n\n")[0].splitlines()
    assert "w: 36,000,000 B read, 0 B written" in traffic
    assert "out: 0 B read, 3,072,000 B written" in traffic
    assert any(line.endswith("; the least is 0 B") for line in traffic)
