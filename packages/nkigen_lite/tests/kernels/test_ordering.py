"""Arrays in order: NumPy's values through source of several versions, NaN last, ties stable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite import compile, topk, trace
from nkigen_lite.tensors.errors import UnsupportedFunctionError

VERSIONS = ("0.2", "0.6", "0.7")


def ties(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    """Whole numbers, many of them equal."""
    return np.random.default_rng(shape).integers(-20, 21, shape).astype(dtype)


def with_nan(*shape: int) -> np.ndarray:
    x = ties(*shape)
    x[0, 3] = np.nan
    x[1, :] = np.nan
    x[2, 5], x[2, 9] = np.inf, -np.inf
    return x


def integers(dtype: Any) -> np.ndarray:
    """Of the whole range."""
    info = np.iinfo(dtype)
    return np.random.default_rng(0).integers(info.min, info.max, (4, 50), dtype, endpoint=True)


def stable_topk(x: np.ndarray, k: int, axis: int = -1, largest: bool = True) -> Any:
    """Independent of the package's own: a stable argsort of negated float64."""
    wide = x.astype(np.float64)
    order = np.argsort(-wide if largest else wide, axis=axis, kind="stable")
    places = np.take(order, range(k), axis)
    return np.take_along_axis(x, places, axis), places


TOPK: dict[str, tuple[np.ndarray, dict[str, Any]]] = {
    "three of forty": (ties(5, 40), {"k": 3}),
    "of fewer than eight": (ties(3, 5), {"k": 5}),
    "more than eight, NaN": (with_nan(5, 40), {"k": 9}),
    "smallest along the first axis": (ties(40, 7), {"k": 3, "axis": 0, "largest": False}),
    "bfloat16": (ties(30, 40, dtype=ml_dtypes.bfloat16), {"k": 8}),
    "int8": (ties(4, 50, dtype=np.int8), {"k": 4}),
    "a long row": (np.arange(40000, dtype=np.float32).reshape(2, -1) % 977, {"k": 5}),
}


@pytest.mark.parametrize("nki", VERSIONS)
@pytest.mark.parametrize("case", TOPK.values(), ids=TOPK)
def test_topk_is_a_stable_descending_argsort(case, nki, versioned_results):
    x, options = case
    kernel = compile(lambda x: topk(x, **options), x, nki=nki)

    for found in (kernel(x), versioned_results(kernel, (x,))):
        for ours, expected in zip(found, stable_topk(x, **options), strict=True):
            np.testing.assert_array_equal(ours.astype(np.float64), expected.astype(np.float64))


def test_eight_of_4096_read_the_array_once():
    stats = compile(lambda x: topk(x, 8, has_nan=False), "f32[1024, 4096]").stats

    assert (stats.instructions, stats.hbm_bytes) == (40, 4 * 1024 * (4096 + 16))


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sort": (np.sort, (with_nan(5, 40),)),
    "sort of 128 rows and one": (np.sort, (ties(129, 16),)),
    "sort along the first axis": (lambda x: np.sort(x, 0), (with_nan(5, 40),)),
    "sort of all": (lambda x: np.sort(x, None), (with_nan(5, 40),)),
    "sort of int32": (np.sort, (integers(np.int32),)),
    "sort of uint32": (np.sort, (integers(np.uint32),)),
    "sort of int16": (np.sort, (integers(np.int16),)),
    "sort of truths": (np.sort, (integers(np.int16) > 0,)),
    "sort of float16": (np.sort, (with_nan(5, 40).astype(np.float16),)),
    "argsort": (lambda x: np.argsort(x, kind="stable"), (with_nan(5, 40),)),
    "argsort of int32": (lambda x: np.argsort(x, 0, kind="stable"), (integers(np.int32),)),
    "median": (lambda x: np.median(x, -1), (with_nan(5, 40),)),
    "median of all": (np.median, (ties(5, 7),)),
    "quantile": (lambda x: np.quantile(x, 0.25, 0, keepdims=True), (ties(5, 7),)),
    "percentile": (lambda x: np.percentile(x, 75, axis=-1), (with_nan(5, 41),)),
    "searchsorted": (np.searchsorted, (np.sort(ties(30)), ties(4, 9))),
    "searchsorted, right, NaN": (
        lambda a, v: np.searchsorted(a, v, "right"), (np.sort(ties(30)), with_nan(3, 10)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("nki", VERSIONS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_values_in_order(case, nki, bitwise):
    function, arrays = case
    bitwise(function, *arrays, nki=nki)


def test_methods_sort_in_place(bitwise):
    def sorted_twice(x: Any) -> Any:
        y = x.copy()
        y.sort(0)
        return y, y.argsort(1, kind="stable")

    bitwise(sorted_twice, ties(6, 9))


def test_a_sort_of_1024_columns_is_one_pass_over_hbm():
    stats = compile(np.sort, "f32[128, 1024]").stats

    assert stats.instructions <= 280
    assert stats.hbm_bytes == 2 * 4 * 128 * 1024


def test_more_than_there_are_and_wide_integers_are_rejected():
    with pytest.raises(ValueError, match="k=9 of an axis of 8"):
        trace(lambda x: topk(x, 9), "f32[4, 8]")
    with pytest.raises(UnsupportedFunctionError, match="int32"):
        trace(lambda x: topk(x, 2), "i32[4, 8]")


def random_case(seed: int) -> tuple[Callable[..., Any], np.ndarray]:
    """A random order along a random axis of numbers with ties, NaN and infinities."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.choice([1, 2, 3, 9, 31, 130], rng.integers(1, 4)).tolist())
    x = rng.integers(-9, 10, shape).astype(np.float32)
    x[rng.random(shape) < 0.1] = rng.choice([np.nan, np.inf, -np.inf])
    axis = int(rng.integers(len(shape)))
    functions = (
        lambda x: np.sort(x, axis), lambda x: np.argsort(x, axis, kind="stable"),
        lambda x: np.median(x, axis), lambda x: np.take_along_axis(x, np.argsort(x, axis), axis),
    )  # fmt: skip
    return functions[rng.integers(len(functions))], x


@pytest.mark.parametrize("seed", range(12))
def test_random_orders(seed, bitwise):
    function, x = random_case(seed)
    bitwise(function, x, nki=VERSIONS[seed % 3])


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 1100))
def test_many_random_orders(seed, bitwise):
    function, x = random_case(seed)
    bitwise(function, x, nki=VERSIONS[seed % 3])


@pytest.mark.parametrize("axis", [-1, 0, None])
def test_one_number_is_in_order(agree, axis):
    agree(lambda x: np.argsort(x, axis), np.array(2, np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint32, np.int16])
@pytest.mark.parametrize("function", [np.sort, np.argsort])
def test_an_axis_without_elements_is_in_order(agree, function, dtype):
    agree(function, np.zeros((3, 0), dtype))
    agree(lambda x: function(x, 0), np.zeros((3, 0), dtype))
