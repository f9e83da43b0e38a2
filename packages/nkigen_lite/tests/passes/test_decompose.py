"""Decompositions in float32 against float64 and exact references, on adversarial inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nkigen_lite import Graph, trace
from nkigen_lite.ir import Node, verify_graph
from nkigen_lite.ops import Kind
from nkigen_lite.passes import decompose

SPECIAL = np.array(
    [0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 1.5, 2.5, 3, -3, 7, 0.1, -0.1, np.inf, -np.inf, np.nan,
     1e10, -1e10, 2**22 + 0.5, 2**23 - 0.5, 2**23 + 1, -(2**24) - 2],
    np.float32,
)  # fmt: skip
PAIRS = np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)

_LACKING = frozenset({
    "sin", "cos", "log1p", "expm1", "power", "divide", "floor_divide", "mod", "floor", "ceil",
    "rint", "trunc", "mean", "any", "all", "argmax", "argmin", "cast", "logical_not", "softmax",
    "rms_norm", "tril", "triu",
})  # fmt: skip
"""Operations that no engine has."""


def is_engine_op(node: Node) -> bool:
    return node.op not in _LACKING and not (
        node.record.kind is Kind.reduce and not node.attrs["keepdims"]
    )


def spread(low: float, high: float, count: int = 20000, seed: int = 1) -> np.ndarray:
    """Both signs, magnitudes from 10^low to 10^high."""
    rng = np.random.default_rng(seed)
    return (rng.choice([-1, 1], count) * 10.0 ** rng.uniform(low, high, count)).astype(np.float32)


def decomposed(function: Callable[..., Any], *arrays: np.ndarray) -> tuple[Graph, np.ndarray]:
    graph = verify_graph(decompose(trace(function, *arrays)))
    assert all(map(is_engine_op, graph.nodes))
    return graph, graph.run(*arrays)


def equal(ours: np.ndarray, expected: np.ndarray) -> np.ndarray:
    return (ours == expected) | (np.isnan(ours) & np.isnan(expected))


def exactly(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """float64 of the float32 inputs."""
    with np.errstate(all="ignore"):
        return function(*(a.astype(np.float64) for a in arrays))


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine_and_cosine_are_within_3e_7_up_to_a_million(name):
    turns = np.arange(-318000, 318000, 7)
    x = np.concatenate(
        [
            spread(-8, 6),
            np.linspace(-12, 12, 4001),
            turns * np.pi,
            (turns + 0.5) * np.pi,
            [1e6, -1e6],
        ]
    ).astype(np.float32)
    x = x[np.abs(x) <= 1e6]

    _, found = decomposed(getattr(np, name), x)

    assert np.abs(found - exactly(getattr(np, name), x)).max() <= 3e-7


def test_sine_beyond_a_million_stays_a_sine_and_nan_stays_nan():
    x = np.concatenate([spread(6, 38), np.array([np.inf, np.nan], np.float32)])
    _, found = decomposed(np.sin, x)

    assert np.abs(found[:-2]).max() <= 1
    assert np.isnan(found[-2:]).all()


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (
            np.log1p,
            np.concatenate([SPECIAL, np.abs(spread(-38, 38)), -np.abs(spread(-38, -0.001))]),
        ),
        (np.expm1, np.concatenate([SPECIAL, np.abs(spread(-37, 1.9)), -np.abs(spread(-37, 2))])),
    ],
    ids=["log1p", "expm1"],
)
def test_near_zero_nothing_is_lost(function, x):
    _, found = decomposed(function, x)
    with np.errstate(over="ignore"):
        expected = exactly(function, x).astype(np.float32)
    finite = np.isfinite(expected)
    error = np.abs(found[finite].astype(np.float64) - expected[finite])

    assert equal(found, expected)[~finite].all()
    # exp or log, a difference, a reciprocal and two products: half an ulp each, doubled
    assert (error <= 5 * 2.0**-23 * np.abs(expected[finite])).all()


@pytest.mark.parametrize("name", ["floor", "ceil", "rint", "trunc"])
def test_roundings_are_exact_everywhere(name):
    x = np.concatenate([SPECIAL, spread(-3, 12), np.arange(-40, 40) / np.float32(4)])
    x = x.astype(np.float32)
    _, found = decomposed(getattr(np, name), x)

    assert equal(found, getattr(np, name)(x)).all()


def quotients() -> tuple[np.ndarray, np.ndarray]:
    """Special pairs, wide ratios, near multiples and small whole numbers."""
    rng = np.random.default_rng(3)
    whole, by = rng.integers(-50, 50, 5000), rng.integers(-8, 8, 5000)
    near = spread(-4, 4, seed=5)
    x = np.concatenate([PAIRS[0], spread(-3, 9), whole, near, near * np.float32(3)])
    y = np.concatenate([PAIRS[1], spread(-3, 4, seed=2), by, near / 7, near]).astype(np.float32)
    return x.astype(np.float32), y


def test_mod_is_exact():
    x, y = quotients()
    _, found = decomposed(np.mod, x, y)
    with np.errstate(all="ignore"):
        expected = np.mod(x, y)

    assert equal(found, expected).all()


def test_floor_divide_is_exact_below_two_to_the_24_and_rounded_above():
    x, y = quotients()
    _, found = decomposed(np.floor_divide, x, y)
    truth = exactly(np.floor_divide, x, y)
    exact = np.abs(truth) < 2**24
    large = np.isfinite(truth) & ~exact

    assert (found[exact] == truth[exact]).all()
    assert equal(found, truth)[~np.isfinite(truth)].all()
    assert (np.abs(found[large] - truth[large]) <= 2.0**-23 * np.abs(truth[large])).all()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("function", [np.floor_divide, np.mod], ids=["floor_divide", "mod"])
def test_small_integers_divide_exactly_and_by_zero_to_zero(function, dtype):
    info = np.iinfo(dtype)
    edges = np.array([info.min, info.min + 1, 0, 1, 2, 3, 7, info.max - 1, info.max], dtype)
    random = np.random.default_rng(9).integers(info.min, info.max, 4000, endpoint=True)
    x = np.concatenate([np.repeat(edges, edges.size), random.astype(dtype)])
    y = np.concatenate([np.tile(edges, edges.size), random[::-1].astype(dtype)])
    y[-1] = -1 if info.min else 1
    _, found = decomposed(function, x, y)
    with np.errstate(all="ignore"):
        expected = function(x, y)

    assert found.dtype == expected.dtype
    assert (found == expected).all()


def test_power_of_negative_bases_zeros_and_infinities():
    x, y = PAIRS
    _, found = decomposed(np.power, x, y)
    expected = exactly(np.power, x, y)
    with np.errstate(over="ignore"):
        expected = expected.astype(np.float32)
    finite = np.isfinite(expected) & (expected != 0)
    with np.errstate(all="ignore"):
        magnitude = np.abs(exactly(lambda a, b: b * np.log(np.abs(a)), x, y))[finite]
        magnitude = np.nan_to_num(magnitude)  # results of 1 that are not products

    assert equal(found, expected)[~finite].all()
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all()
    error = np.abs(found.astype(np.float64) / np.where(finite, expected, 1) - 1)[finite]
    assert (error <= (2 + magnitude) * 2.0**-23).all()


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, 10, -1, -2, -3])
def test_whole_powers_multiply(exponent):
    x = np.concatenate([SPECIAL, spread(-3, 3)])
    graph, found = decomposed(lambda x: x**exponent, x)
    with np.errstate(all="ignore"):
        expected = exactly(lambda x: x**exponent, x).astype(np.float32)
        finite = np.isfinite(expected)
        error = np.abs(found - expected)[finite]

    assert not {"exp", "log"} & {n.op for n in graph.nodes}
    assert equal(found, expected)[~finite].all()
    assert (error <= 10 * 2.0**-23 * np.abs(expected[finite])).all()


def test_the_branch_not_taken_poisons_nothing():
    x = np.array([-1, 0, 1, np.inf], np.float32)
    _, found = decomposed(lambda x: np.where(x > 0, np.log(x), -np.inf), x)

    assert found.tolist() == [-np.inf, -np.inf, 0, np.inf]


@pytest.mark.parametrize(
    "source", ["f32", "f16", "int8", "uint8", "int16", "uint16", "int32", "uint32"]
)
@pytest.mark.parametrize(
    "target", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "bool", "f16"]
)
def test_casts_wrap_integers_and_truncate_floats(source, target, arrays_for):
    storage = np.dtype({"f32": "float32", "f16": "float16"}.get(source, source))
    if storage.kind == "f":
        x = np.array([0, -0.0, 0.5, 1.5, 2.75, 99.9, 3, 1], storage)
        x = np.concatenate([x, -x]) if not target.startswith("uint") else x
    else:
        info = np.iinfo(storage)
        x = np.array([0, 1, 5, 127, info.min, info.max, info.max - 1, info.max // 3], storage)
    name = {"f16": "float16"}.get(target, target)
    with np.errstate(over="ignore"):
        expected = x.astype(name)

    _, found = decomposed(lambda x: x.astype(name), x)

    assert found.dtype == expected.dtype
    assert equal(found, expected).all()


@pytest.mark.parametrize("shape", [(5, 7), (0, 3), (3, 0)], ids=str)
@pytest.mark.parametrize("function", [np.sum, np.prod, np.mean, np.any, np.all])
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_reductions_keep_their_axes_also_of_nothing(function, shape, arrays_for):
    (x,) = arrays_for([f"f32{list(shape)}"])
    for axis in (0, 1, None):
        _, found = decomposed(lambda x, a=axis: function(x, axis=a), x)
        with np.errstate(all="ignore"):
            expected = function(x, axis=axis)
        assert found.shape == np.shape(expected)
        assert np.allclose(found, expected, rtol=x.size * 2.0**-23, equal_nan=True)


@pytest.mark.parametrize("function", [np.argmax, np.argmin])
def test_places_are_the_first_extreme_or_nan(function):
    x = np.array([[3, 1, 3, 1], [1, np.nan, 0, np.nan], [-np.inf] * 4], np.float32)
    for axis in (0, 1, None):
        _, found = decomposed(lambda x, a=axis: function(x, axis=a), x)
        assert np.array_equal(found, function(x, axis=axis))
