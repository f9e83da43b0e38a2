"""Repeated steps as loops: equal values, text that is read back, what is not a loop."""

from __future__ import annotations

import numpy as np
import pytest

from nkigen_lite import parse_graph, scan, trace
from nkigen_lite.compiler.compile import roll_loops
from nkigen_lite.tensors.errors import ValueRangeError


def power(x, n=20):
    for _ in range(n):
        x = np.tanh(x * 1.5)
    return x


def test_a_chain_of_steps_is_one_loop():
    graph = roll_loops(trace(power, "f32[4]"))

    assert str(graph) == (
        "def power(x0: float32[4]):\n"
        "    v0 = loop(x0, body='def step(x0: float32[4]):\\n"
        "    v0 = constant(1.5, float32[()])  # float32[()]\\n"
        "    v1 = multiply(x0, v0)  # float32[4]\\n"
        "    v2 = tanh(v1)  # float32[4]\\n"
        "    return v2\\n', carries=1, stacked=0, steps=20, result=0)  # float32[4]\n"
        "    return v0\n"
    )
    assert parse_graph(str(graph)) == graph


def test_fifteen_steps_are_left_as_they_are():
    graph = trace(lambda x: power(x, 15), "f32[4]")

    assert roll_loops(graph) is graph


def test_independent_parts_are_not_a_loop():
    graph = trace(lambda x: np.stack([np.exp(x[t]) * x[t] for t in range(20)]), "f32[20,4]")

    assert roll_loops(graph) is graph


def twice_back(x):
    """Each step needs what two steps before it left."""
    left = [x, x * 2]
    for _ in range(20):
        left.append(np.tanh(left[-2]) + left[-1] * 0.5)
    return left[-1], left[5]


def both_directions(x):
    forward, backward = [x[0]], [x[-1]]
    for t in range(1, 20):
        forward.append(np.maximum(forward[-1] * 0.9, x[t]))
    for t in range(18, -1, -1):
        backward.append(np.minimum(backward[-1] * 0.9, x[t]))
    return np.stack(forward) + np.stack(backward[::-1])


def pieces(x):
    """What some steps leave is used by itself."""
    state, left = x[:, 0], []
    for t in range(20):
        state = np.sin(state) + x[:, t]
        left.append(state)
    return left[3] * left[19], np.concatenate([s[:, None] for s in left[:20]], 1)


@pytest.mark.parametrize("function", [power, twice_back, both_directions, pieces])
def test_rolled_graphs_have_the_values_of_the_program(function):
    x = np.random.default_rng(0).standard_normal((20, 20)).astype(np.float32)
    traced = trace(function, x)
    graph = roll_loops(traced)

    assert len(graph.nodes) < len(traced.nodes)
    assert parse_graph(str(graph)) == graph
    found, expected = graph.run(x), function(x)
    pairs = zip(found, expected, strict=True) if len(graph.outputs) > 1 else [(found, expected)]
    for ours, numpys in pairs:
        np.testing.assert_allclose(ours, numpys, rtol=1e-5, atol=1e-6)


def test_scan_of_different_lengths_is_rejected():
    with pytest.raises(ValueRangeError, match="arrays of different lengths"):
        trace(lambda x, y: scan(lambda c, e: (c, e[0]), x[0], (x, y)), "f32[4,2]", "f32[5,2]")
    with pytest.raises(ValueRangeError, match="the steps are not counted"):
        scan(lambda c, e: (c, c), 0)
