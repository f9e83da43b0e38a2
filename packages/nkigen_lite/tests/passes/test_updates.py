"""Arrays written part by part until nothing of them is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nkigen_lite import trace
from nkigen_lite.passes import canonicalize


def halves(x: Any) -> Any:
    made = np.zeros_like(x)
    made[:, 5:] = x[:, :3]
    made[:, :5] = x[:, 3:]
    return made


def alternating(x: Any) -> Any:
    made = np.full_like(x, 7)
    made[2::3], made[::3], made[1::3] = x[4:], x[:2], x[2:4]
    return made


def twice(x: Any) -> Any:
    made = np.zeros_like(x)
    made[:, :4] = x[:, 4:]
    made[:, :4] = x[:, :4]
    return made


def overlapping(x: Any) -> Any:
    made = np.zeros_like(x)
    made[:4] = x[:4] + 1
    made[2:] = x[2:]
    return made


def with_gaps(x: Any) -> Any:
    made = np.zeros_like(x)
    made[:, ::2], made[:, 1:7:2] = x[:, :4], x[:, :3]
    return made


def partly(x: Any) -> Any:
    made = np.zeros_like(x)
    made[:, ::2], made[:3, 1::2] = x[:, :4], x[:3, :4]
    return made


def alternating_to_an_odd_end(x: Any) -> Any:
    made = np.zeros_like(x[:5])
    made[::2], made[1::2] = x[:3], x[3:5]
    return made


X = np.arange(48, dtype=np.float32).reshape(6, 8)


@pytest.mark.parametrize("function", [halves, alternating])
def test_what_is_written_everywhere_is_put_side_by_side(function):
    graph = canonicalize(trace(function, X))

    assert np.array_equal(graph.run(X), function(X))
    assert {"concatenate"} <= {n.op for n in graph.nodes} <= {"slice", "reshape", "concatenate"}


@pytest.mark.parametrize(
    "function", [twice, overlapping, with_gaps, partly, alternating_to_an_odd_end]
)
def test_what_is_left_of_an_array_stays(function: Callable[..., Any]):
    graph = canonicalize(trace(function, X))

    assert np.array_equal(graph.run(X), function(X))
    assert "update" in {n.op for n in graph.nodes}
