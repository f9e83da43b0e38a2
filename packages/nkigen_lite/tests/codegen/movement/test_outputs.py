"""`out=` of another dtype: what NumPy leaves there, or an error where one value is not defined."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nkigen_lite import trace
from nkigen_lite.compiler.compile import compile
from nkigen_lite.tensors.errors import ArgumentError

DTYPES = ("f4", "f2", ml_dtypes.bfloat16, "i1", "u1", "i4", "?")
TRANSLATED = {
    "sum": (7, 7, 7, 4, 4, 4, 0),
    "cumsum": (7, 7, 7, 4, 4, 4, 1),
    "prod": (7, 4, 7, 4, 4, 4, 0),
    "cumprod": (7, 4, 7, 4, 4, 4, 1),
    **dict.fromkeys(("max", "min"), (7, 7, 7, 2, 2, 7, 1)),
    **dict.fromkeys(("mean", "var", "std"), (7, 7, 7, 0, 0, 0, 0)),
    **dict.fromkeys(("any", "all"), (7,) * 7),
    "argmax": (0, 0, 0, 7, 7, 7, 7),
}
"""How many of the dtypes are translated for each dtype of `out=`."""


def elements(dtype: Any) -> np.ndarray:
    """Fractions of floats, large integers, zeros among them."""
    dtype, rng = np.dtype(dtype), np.random.default_rng(3)
    if dtype == np.bool_:
        return rng.random((9, 6)) < 0.8
    if dtype.kind in "iu":
        high = {1: 100, 4: 1 << 30}[dtype.itemsize]
        return rng.integers(0 if dtype.kind == "u" else -high, high, (9, 6)).astype(dtype)
    return (np.abs(rng.standard_normal((9, 6))) + 0.25).astype(dtype)


def rejection(function: Any, *arrays: Any) -> ArgumentError | None:
    try:
        trace(function, *arrays)
    except ArgumentError as rejected:
        return rejected
    return None


def is_near(ours: np.ndarray, numpys: np.ndarray, given: np.ndarray) -> bool:
    """Integers equal; of floats NumPy rounds each of 9 terms to the narrower type, and a result."""
    if numpys.dtype.kind in "iub":
        return np.array_equal(ours, numpys)
    kinds = [d for d in (numpys.dtype, given.dtype) if d.kind in "fV"]
    ulp = float(max(ml_dtypes.finfo(d).eps for d in kinds))
    a, b = ours.astype(np.float64), numpys.astype(np.float64)
    with np.errstate(invalid="ignore"):
        close = np.abs(a - b) <= 10 * ulp * np.abs(b)
    return bool(np.all(close | (a == b)))


@pytest.mark.parametrize("out", DTYPES, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("name", TRANSLATED)
def test_every_pair_is_numpys_or_rejected(name, out):
    reduction, translated = getattr(np, name), 0

    def function(x: Any) -> Any:
        shape = x.shape if name.startswith("cum") else x.shape[1:]
        made = np.zeros_like(x, shape=shape, dtype=out)
        reduction(x, 0, out=made)
        return made

    for given in map(elements, DTYPES):
        if name.endswith("prod") and given.dtype.kind in "iu" and np.dtype(out) == np.float16:
            continue  # beyond its range: NumPy multiplies infinity by 0, the kernel rounds once
        rejected = rejection(function, given)
        try:
            with np.errstate(all="ignore"):
                expected = function(given)
        except TypeError:
            assert rejected is not None
            continue
        if rejected is None:
            translated += 1
            assert is_near(np.asarray(compile(function, given)(given)), expected, given)
        else:
            assert rejected.hint
    assert translated == TRANSLATED[name][DTYPES.index(out)]


def test_sums_of_floats_are_not_cut_off_where_a_buffer_ends():
    x = np.full((5, 5), 0.6, np.float32)
    rejected = rejection(lambda x, o: np.sum(x, 0, out=o), x, np.zeros(5, np.int32))
    assert "out[...] = np." in str(rejected)


def test_the_sum_of_a_mean_overflows_where_numpys_does():
    x = np.full((9, 6), 3e4, np.float32)

    def function(x: Any) -> Any:
        made = np.zeros_like(x, shape=(6,), dtype=np.float16)
        return np.mean(x, 0, out=made)

    with np.errstate(over="ignore"):
        expected = function(x)
    assert np.array_equal(np.asarray(compile(function, x)(x)), expected)


@pytest.mark.parametrize("given", ["f2", ml_dtypes.bfloat16])
@pytest.mark.parametrize("function", [np.mean, np.var, np.std])
def test_averages_of_halves_in_float32_were_never_halves(function, given):
    x = elements(given)

    def reduced(x: Any) -> Any:
        return function(x, 0, out=np.zeros_like(x, shape=(6,), dtype="f4"))

    expected = function(x.astype(np.float64), 0)
    assert np.allclose(compile(reduced, x)(x), expected, rtol=8 * 2.0**-23, atol=0)


def test_a_sum_in_halves_is_not_divided_in_float32():
    x = elements("f4")

    def mean(x: Any) -> Any:
        return np.mean(x, 0, dtype="f2", out=np.zeros_like(x, shape=(6,)))

    rejected = rejection(mean, x)
    assert rejected is not None
    assert "NumPy adds in float16, as dtype= requests, and divides in float32" in str(rejected)
