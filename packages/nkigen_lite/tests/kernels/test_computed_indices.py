"""Indices that the kernel computes: read, written and added at, through source of several versions;
values are NumPy's bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from neuroncore.errors import AccessError
from nkigen_lite import compile, trace

VERSIONS = ("0.2", "0.6", "0.7")


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def indices(n: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
    """Places of an axis of n elements, counted from both ends."""
    low = -n if np.dtype(dtype).kind == "i" else 0
    return np.random.default_rng([n, *shape]).integers(low, n, shape, dtype)


def put(x: Any, i: Any, v: Any) -> Any:
    y = x.copy()
    y[i] = v
    return y


def put_second(x: Any, i: Any, v: Any) -> Any:
    y = x.copy()
    y[:, i] = v
    return y


def put_along(x: Any, i: Any, v: Any) -> Any:
    y = x.copy()
    np.put_along_axis(y, i, v, -1)
    return y


def put_through_a_view(x: Any, i: Any) -> Any:
    y = x.copy()
    row = y[i[0]]
    row += 1
    return y


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "rows": (lambda x, i: x[i], (floats(50, 16), indices(50, 300))),
    "rows, then computed with": (lambda x, i: x[i] * 2 - 1, (floats(50, 16), indices(50, 30))),
    "rows of two index axes": (lambda x, i: x[i], (floats(9, 4, 3), indices(9, 3, 4))),
    "rows of bfloat16": (
        lambda x, i: x[i], (floats(9, 6, dtype=ml_dtypes.bfloat16), indices(9, 4)),
    ),
    "rows of integers": (lambda x, i: x[i], (indices(99, 9, 5), indices(9, 4))),
    "unsigned": (lambda x, i: x[i], (floats(9, 6), indices(9, 5, dtype=np.uint8))),
    "take": (lambda x, i: np.take(x, i, 1), (floats(5, 50, 16), indices(50, 3, 4))),
    "take of all": (lambda x, i: np.take(x, i), (floats(5, 50), indices(250, 7))),
    "take clipped": (
        lambda x, i: np.take(x, i, 0, mode="clip"), (floats(5, 50), indices(9, 7)),
    ),
    "take around": (lambda x, i: np.take(x, i, 0, mode="wrap"), (floats(5, 50), indices(9, 7))),
    "one row": (lambda x, t: x[t], (floats(5, 50), indices(5))),
    "one place of an inner axis": (lambda x, t: x[:, t, :], (floats(5, 50, 16), indices(50))),
    "one place of the last axis": (lambda x, t: x[..., t], (floats(5, 50, 16), indices(16))),
    "two arrays": (lambda x, i: x[i[0], i[1]], (floats(5, 5, 16), indices(5, 2, 9))),
    "arrays apart": (lambda x, i: x[i, :, i], (floats(5, 6, 5), indices(5, 9))),
    "beside a known one": (lambda x, i: x[i, np.arange(5)], (floats(5, 6, 5), indices(5, 5))),
    "along the last axis": (
        lambda x, i: np.take_along_axis(x, i, -1), (floats(5, 7, 16), indices(16, 5, 7, 3)),
    ),
    "along the first axis": (
        lambda x, i: np.take_along_axis(x, i, 0), (floats(5, 16), indices(5, 3, 16)),
    ),
    "of the largest": (lambda x: x[np.argmax(x, 0)], (floats(6, 9),)),
    "write rows": (put, (floats(50, 16), indices(50, 300), floats(300, 16))),
    "write one row": (put, (floats(50, 16), indices(50), floats(16))),
    "write a number": (put, (floats(50, 16), indices(50, 9), np.float32(3))),
    "write one place of an inner axis": (
        put_second, (floats(5, 50, 16), indices(50), floats(5, 16)),
    ),
    "write places of an inner axis": (
        put_second, (floats(5, 50, 16), indices(50, 7), floats(5, 7, 16)),
    ),
    "write along": (
        put_along, (floats(50, 16), np.argsort(floats(50, 16))[:, :3].astype(np.int32),
                    floats(50, 3)),
    ),
    "write through a view": (put_through_a_view, (floats(5, 16), indices(5, 2))),
}  # fmt: skip


@pytest.mark.parametrize("nki", VERSIONS)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_elements_at_computed_places(case, nki, bitwise):
    function, arrays = case
    bitwise(function, *arrays, nki=nki)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_additions_at_equal_places_are_all_made(dtype, bitwise):
    def add(x: Any, i: Any, v: Any) -> Any:
        y = x.copy()
        np.add.at(y, i, v)
        return y

    whole = [np.rint(floats(*s) * 4).astype(dtype) for s in ((5, 16), (99, 16))]
    bitwise(add, whole[0], indices(5, 99), whole[1])


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int32, np.int8, np.bool_])
def test_many_known_rows_are_gathered(dtype, bitwise):
    known = indices(900, 700)
    x = (floats(900, 512) * 9).astype(dtype)
    kernel = compile(lambda x: x[known], x)

    assert kernel.stats.instructions < 30
    bitwise(lambda x: x[known], x)
    bitwise(lambda x: np.take(x, known.reshape(7, 100), 0, mode="wrap"), x)
    bitwise(lambda x: x[known, known % 6], x)


def test_one_place_is_one_transfer():
    kernel = compile(lambda x, t: np.take(x, t, 1, mode="wrap"), "f32[32, 2048, 128]", "uint8[]")

    assert kernel.stats.hbm_bytes < 2**16


def test_an_index_out_of_bounds_is_an_error_of_the_run():
    x = floats(5, 4)
    kernel = compile(lambda x, i: x[i], x, indices(5, 3))

    for wrong in (5, -6):
        with pytest.raises(AccessError):
            kernel(x, np.array([0, wrong, 1], np.int32))


def test_floats_are_rejected_as_numpy_does():
    with pytest.raises(IndexError, match="must be of integer"):
        trace(lambda x, i: x[i], "f32[5]", "f32[2]")


def random_case(seed: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A read, or a write and a read, along a random axis of a random array."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.choice([1, 2, 3, 7, 16, 129], rng.integers(1, 4)).tolist())
    axis = int(rng.integers(len(shape)))
    count = tuple(rng.choice([1, 2, 5, 130], rng.integers(0, 3)).tolist())
    x, i = floats(*shape), indices(shape[axis], *count)
    key = (slice(None),) * axis
    if rng.integers(2):
        return lambda x, i: x[(*key, i)] + x[(*key, i)], (x, i)
    part = floats(*shape[:axis], *count, *shape[axis + 1 :])

    def write(x: Any, i: Any, part: Any) -> Any:
        y = x * 2
        y[(*key, i)] = part
        return y

    return write, (x, i, part)


@pytest.mark.parametrize("seed", range(12))
def test_random_places(seed, bitwise):
    function, arrays = random_case(seed)
    bitwise(function, *arrays, nki=VERSIONS[seed % 3])


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 1100))
def test_many_random_places(seed, bitwise):
    function, arrays = random_case(seed)
    bitwise(function, *arrays, nki=VERSIONS[seed % 3])


def cached(cache: Any, t: Any, new: Any) -> None:
    cache[:, t] = new


def test_a_cache_is_written_in_place_where_that_is_requested(versioned_results):
    cache, t, new = floats(32, 64, 16), indices(64), floats(32, 16)
    kernel = compile(cached, cache, t, new, in_place=True)
    expected = cache.copy()
    cached(expected, t, new)

    assert kernel.stats.hbm_bytes < cache.nbytes / 10
    ours, written = cache.copy(), cache.copy()
    kernel(ours, t, new)
    versioned_results(kernel, (written, t, new))
    for found in (ours, written):
        assert found.tobytes() == expected.tobytes()


def test_what_is_read_after_the_write_is_not_written_in_place():
    def both(x: Any, t: Any) -> Any:
        old = x.copy()
        x[t] = 1
        return old * 2

    x, t = floats(8, 4), indices(8)
    kernel = compile(both, x, t, in_place=True)
    mine, expected = x.copy(), x.copy()

    assert kernel(mine, t).tobytes() == both(expected, t).tobytes()
    assert mine.tobytes() == expected.tobytes()


def test_nothing_is_taken_from_an_axis_without_elements(agree):
    empty, places = np.zeros((3, 0), np.float32), np.zeros((3, 0), np.int32)

    agree(lambda x, i: np.take_along_axis(x, i, -1), empty, places)
    agree(lambda x, i: np.take(x, i, -1), empty, places[0])


def test_a_gather_of_more_columns_than_a_group_has_a_latency():
    def latency_us(columns):
        x, i = np.zeros((9, columns), np.float32), np.zeros((9, columns), np.int32)
        return compile(lambda x, i: np.take_along_axis(x, i, -1), x, i).stats.predicted_us

    assert latency_us(513) > 0


def test_the_place_in_an_order_of_one_number_is_an_index(bitwise):
    def function(x, y):
        z = y.copy()
        z[np.abs(np.argsort(x, axis=None, kind="stable")[0])] = x
        return z

    bitwise(function, np.array(2.5, np.float32), np.arange(3, dtype=np.float32))
