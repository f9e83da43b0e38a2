"""Joined and padded arrays that are put together in the tiles that they are loaded into."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


def rms(x: Any) -> Any:
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + 1e-6)


def filtered(x: Any, w: Any) -> Any:
    padded = np.pad(x, ((0, 0), (3, 0)))
    return sum(padded[:, i : i + x.shape[1]] * w[:, i, None] for i in range(4))


def shifted(x: Any, mix: Any) -> Any:
    before = np.concatenate([np.zeros_like(x[:, :1]), x[:, :-1]], 1)
    return x * mix + before * (1 - mix)


def merged(x: Any) -> Any:
    return rms(np.concatenate([x[:, a::2, b::2] for b in range(2) for a in range(2)], -1))


EXAMPLES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], float]] = {
    "columns": (lambda a, b: rms(np.concatenate([a, b], 1)), ((1021, 512), (1021, 100)), 1.0),
    "ragged rows": (lambda a, b: rms(np.concatenate([a, b])), ((1021, 512), (5, 512)), 1.0),
    "elements": (lambda a, b: np.concatenate([a, b]) * 2, ((1021, 512), (1021, 512)), 1.0),
    "padding": (filtered, ((256, 1024), (256, 4)), 1.0),
    "shifted rows": (shifted, ((2, 512, 512), (512,)), 1.5),
    "parts with strides": (merged, ((8, 56, 56, 192),), 1.0),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_joined_array_does_not_go_through_hbm(name, assert_lowers_right, normal):
    function, shapes, most = EXAMPLES[name]

    kernel = assert_lowers_right(function, *(normal(*shape) for shape in shapes))

    results = sum(np.prod(kernel.graph.specs[v].shape) for v in kernel.graph.results)
    least = 4 * (sum(np.prod(shape) for shape in shapes) + results)
    assert kernel.stats.hbm_bytes <= 1.01 * most * least
    told = kernel.explain()
    assert "put together in the tiles" in told or "concatenate_in_hbm stays in SBUF" in told


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int16, bool])
@pytest.mark.parametrize("axis", [0, 1])
def test_integers_are_joined_exactly(exactly, dtype, axis):
    x, y = (np.random.default_rng(28).integers(0, 2, s).astype(dtype) for s in ((300, 70),) * 2)

    exactly(lambda a, b: np.maximum(np.concatenate([a, b[:, ::-1], a], axis), True), x, y)


@pytest.mark.parametrize("value", [0.0, -np.inf, 7.5])
def test_windows_over_both_edges(assert_lowers_right, normal, value):
    def function(x: Any) -> Any:
        padded = np.pad(x, ((0, 0), (2, 2)), constant_values=value)
        return np.maximum(padded[:, :-4], padded[:, 4:]) + x

    assert_lowers_right(function, normal(200, 600))


@pytest.mark.parametrize("step", [2, -1])
def test_every_other_element_of_a_joined_array(assert_lowers_right, normal, step):
    def function(a: Any, b: Any) -> Any:
        joined = np.concatenate([a, b], 1)[:, ::step]
        return np.exp(-joined * joined)

    assert_lowers_right(function, normal(256, 129), normal(256, 300))


@pytest.mark.parametrize("padding", [0, -3])
def test_integers_of_32_bits_are_joined_by_their_bits(exactly, padding):
    x = np.random.default_rng(28).integers(-(2**30), 2**30, (300, 70), np.int32)

    exactly(lambda a: np.pad(a, ((0, 0), (1, 1)), constant_values=padding) * 5, x)


def test_an_array_that_is_read_in_another_way_too_stays_in_hbm(assert_lowers_right, normal):
    def function(a: Any, b: Any) -> Any:
        joined = np.concatenate([a, b], 1)
        return rms(joined), joined[:, 17]

    assert_lowers_right(function, normal(256, 129), normal(256, 300))


@pytest.mark.parametrize("shape", [(1021, 64), (261_376,), (7, 100_003)])
def test_long_runs_are_dealt_to_all_dma_engines(moves, normal, shape):
    kernel = moves(lambda x: np.concatenate([x, x[:1]]), normal(*shape))

    assert kernel.stats.predicted_us <= kernel.stats.bound_us + 2
