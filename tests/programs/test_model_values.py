"""The calibration programs compute what the published kernels compute, against float64 NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from benchmarks.model.points import all_points

from neuroncore.program import execute_program
from nki_dtypes import STORAGE_DTYPES

POINTS = {point.id: point for point in all_points()}
BFLOAT16 = STORAGE_DTYPES["bfloat16"]

ROUNDING = 2.0**-8
"""The largest relative error of one rounding to bfloat16, which has 8 significant bits."""

Array = np.ndarray


def normal(*shape: int, seed: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def computed(name: str, *given: Array) -> Array:
    (result,) = execute_program(POINTS[name].build(), list(given))
    return result.astype(np.float64)


def worst(result: Array, reference: Array) -> float:
    """The largest error, as a part of the largest value."""
    return float(np.abs(result - reference).max() / np.abs(reference).max())


def mamba(delta: Array, u: Array, decay: Array, into: Array, out_of: Array) -> Array:
    """Σ over states of C · scan(exp(delta · A), delta · u · B). delta, u (channels, S)."""
    delta, u, decay, into, out_of = (x.astype(np.float64) for x in (delta, u, decay, into, out_of))
    total = np.zeros_like(delta)
    for state in range(decay.shape[1]):
        keep, add = np.exp(delta * decay[:, state : state + 1]), delta * u * into[state]
        value = np.zeros(len(delta))
        for t in range(delta.shape[1]):
            value = keep[:, t] * value + add[:, t]
            total[:, t] += value * out_of[state, t]
    return total


def mamba_inputs(channels: int, length: int) -> list[Array]:
    delta = np.abs(normal(channels, length, seed=1)) * np.float32(0.1)
    decay = -np.abs(normal(channels, 16, seed=2))
    return [
        delta, normal(channels, length, seed=3), decay,
        normal(16, length, seed=4), normal(16, length, seed=5),
    ]  # fmt: skip


def attention(q: Array, k: Array, v: Array) -> Array:
    """softmax(q kᵀ) v; (S, d)."""
    scores = q @ k.T
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return weights @ v / weights.sum(1, keepdims=True)


@pytest.mark.parametrize(("name", "channels", "length"), [
    ("m1", 256, 512),
    pytest.param("m3", 4096, 512, marks=pytest.mark.thorough),
    pytest.param("m3_2048", 4096, 2048, marks=pytest.mark.thorough),
    pytest.param("b0", 256, 2048, marks=pytest.mark.thorough),
])  # fmt: skip
def test_mamba_is_a_scan(name, channels, length):
    given = mamba_inputs(channels, length)

    # A scan rounds its state once a step, by at most 2^-24 of it.
    assert worst(computed(name, *given), mamba(*given)) < length * 2.0**-24


@pytest.mark.parametrize("name", ["c3", "c6", "c14"])
def test_vectors_are_added_exactly(name):
    shape = POINTS[name].build().parameters[0].shape
    left, right = normal(*shape, seed=1), normal(*shape, seed=2)

    assert (computed(name, left, right) == left + right).all()


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["a1", "a2"])
def test_a_product_of_matrices_that_stay_in_sbuf(name):
    left, right = (normal(2048, 2048, seed=s).astype(BFLOAT16) for s in (1, 2))

    reference = left.astype(np.float64).T @ right.astype(np.float64)

    # One rounding; float32 sums of 2,048 products add less than a tenth of it.
    assert worst(computed(name, left, right), reference) < 1.1 * ROUNDING


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["t0", "t4"])
def test_attention_of_one_head(name):
    q, k, v = ((normal(128, 4096, seed=s) * 0.3).astype(BFLOAT16) for s in (1, 2, 3))

    reference = attention(*(x.astype(np.float64).T for x in (q, k, v)))

    # Weights twice and the result are rounded to bfloat16.
    assert worst(computed(name, q, k, v), reference) < 3 * ROUNDING


def test_attention_of_a_small_head():
    q, k, v = (normal(4096, 64, seed=s) for s in (1, 2, 3))
    narrow = [x.astype(BFLOAT16).astype(np.float64) for x in (q * np.float32(0.125), k, v)]

    # Against inputs in bfloat16, only the weights are rounded.
    assert worst(computed("s0", q, k, v), attention(*narrow)) < 1.1 * ROUNDING


def silu() -> tuple[list[Array], Array]:
    x = normal(128, 32, 7168, seed=1)
    return [x], x / (1 + np.exp(-x.astype(np.float64)))


def rope() -> tuple[list[Array], Array]:
    x, cos, sin = (normal(n, 262_144, seed=n + s) for n, s in ((128, 0), (64, 1), (64, 2)))
    even, odd = x[:64].astype(np.float64), x[64:].astype(np.float64)
    return [x, cos, sin], np.concatenate([even * cos - odd * sin, odd * cos + even * sin])


def rmsnorm_matmul() -> tuple[list[Array], Array]:
    x, y = normal(32, 128, 1024, seed=1), normal(8, 128, 2048, seed=2)
    rows = x.astype(np.float64)
    rows /= np.sqrt((rows**2).mean(-1, keepdims=True))
    return [x, y, np.eye(128, dtype=np.float32)], rows @ y.reshape(1024, 2048)


def conv1d() -> tuple[list[Array], Array]:
    x, w = normal(8, 512, 2048, seed=1), normal(512, 3, seed=2)
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1)))
    parts = [padded[:, :, i : i + 2048] * w[None, :, i : i + 1] for i in range(3)]
    return [x, w], np.sum(parts, axis=0)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "case"),
    [("n_silu", silu), ("n_rope", rope), ("n_rmsnorm_matmul", rmsnorm_matmul), ("d0", conv1d)],
)
def test_a_float32_kernel_gives_its_formula(name, case: Callable[[], tuple[list[Array], Array]]):
    given, reference = case()

    # At most 1,024 products are summed; their errors add up like their square root: 32 · 2^-24.
    assert worst(computed(name, *given), reference) < 32 * 2.0**-24
