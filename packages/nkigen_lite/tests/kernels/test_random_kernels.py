"""Random programs of all dtypes and ranks: the emitted source gives NumPy's values, or the error
names one of the reasons that are listed here."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from nki_dtypes import cast, resolve
from nkigen_lite import Spec, as_spec, narrow
from nkigen_lite.compiler.compile import compile
from nkigen_lite.tensors.errors import TraceError

FORMATS = (
    "f32", "f32", "f16", "bf16", "tf32", "e4m3", "e4m3fn", "e5m2", "int8", "int16", "int32",
    "uint8", "uint16", "uint32", "bool",
)  # fmt: skip
REASONS = ("uint32 with signed integers",)
"""What an error may say."""
LOWERED = 0.97
"""The share of programs that have a kernel, at least; 1,195 of 1,200 had one."""

# Each takes two arrays so far and a number to choose by; what NumPy rejects is left out.
STEPS: dict[str, Callable[[Any, Any, int], Any]] = {
    "add": lambda x, y, n: x + y,
    "subtract": lambda x, y, n: n - x - y,
    "multiply": lambda x, y, n: x * y,
    "scale": lambda x, y, n: x * (n - 2) + 1,
    "half": lambda x, y, n: x * 0.5,
    "divide": lambda x, y, n: x / (np.abs(y) + 1),
    "floor_divide": lambda x, y, n: x // (y * y + 1),
    "mod": lambda x, y, n: x % (n + 1),
    "extremes": lambda x, y, n: np.minimum(np.maximum(x, y), n),
    "compare": lambda x, y, n: [np.less, np.equal, np.greater_equal][n % 3](x, y),
    "where": lambda x, y, n: np.where(x > 1, y, x),
    "mask": lambda x, y, n: np.where(content(x.shape[n % 2 :], n) > 1, x, y),
    "table": lambda x, y, n: x + content(x.shape[-1:], n),
    "choose": lambda x, y, n: np.where(x, y, n),
    "abs": lambda x, y, n: np.abs(x),
    "negative": lambda x, y, n: -x,
    "functions": lambda x, y, n: [np.tanh, np.sin, np.cos, np.sqrt][n % 4](np.abs(x)),
    "exp": lambda x, y, n: np.exp(-np.abs(x)),
    "round": lambda x, y, n: [np.floor, np.ceil, np.rint, np.trunc][n % 4](x),
    "square": lambda x, y, n: x**2,
    "shift": lambda x, y, n: (x << n) >> 1,
    "bits": lambda x, y, n: (x & y) | (~x ^ n),
    "logical": lambda x, y, n: np.logical_xor(x, y) | ~(x > n),
    "sum": lambda x, y, n: in_float32(np.sum, x, axis=n % x.ndim, keepdims=n > 2),
    "max": lambda x, y, n: [np.max, np.min][n % 2](x, axis=-1, keepdims=n > 2),
    "mean": lambda x, y, n: in_float32(np.mean, x, axis=-1, keepdims=n > 1),
    "std": lambda x, y, n: in_float32(np.std, x, axis=-1, keepdims=True),
    "prod": lambda x, y, n: in_float32(np.prod, x[..., :3], axis=-1),
    "cumsum": lambda x, y, n: in_float32(np.cumsum, x, axis=n % x.ndim),
    "accumulate": lambda x, y, n: [np.maximum, np.minimum][n % 2].accumulate(x, axis=-1),
    "any": lambda x, y, n: [np.any, np.all][n % 2](x, axis=-1, keepdims=n > 2),
    "argmax": lambda x, y, n: [np.argmax, np.argmin][n % 2](x, axis=n % x.ndim),
    "matmul": lambda x, y, n: x @ y,
    "by_transpose": lambda x, y, n: x @ x.T,
    "transpose": lambda x, y, n: x.T,
    "flat": lambda x, y, n: x.reshape(-1),
    "slice": lambda x, y, n: x[n % 2 :: n + 1],
    "reverse": lambda x, y, n: x[..., ::-1],
    "new_axis": lambda x, y, n: x[:, None],
    "row": lambda x, y, n: x[-1],
    "concatenate": lambda x, y, n: np.concatenate([x, x[:1], y]),
    "stack": lambda x, y, n: np.stack([x, x]),
    "triangle": lambda x, y, n: [np.tril, np.triu][n % 2](x, n - 2),
    "counted": lambda x, y, n: x + np.arange(x.shape[-1], dtype=x.dtype) * x.dtype.type(n),
    "cast": lambda x, y, n: x.astype([np.int32, np.float32, np.float16, bool][n % 4]),
    "write": lambda x, y, n: written(x, n),
    "take": lambda x, y, n: np.take(x, places(y, x.shape[0])[: n + 2], axis=0),
    "take_along": lambda x, y, n: np.take_along_axis(x, whole(x) % x.shape[-1], -1),
    "put": lambda x, y, n: put(x, places(y, x.shape[0])[n % 2]),
    "sort": lambda x, y, n: np.sort(x, axis=-1),
    "argsort": lambda x, y, n: np.argsort(x, axis=-1, kind="stable"),
    "window": lambda x, y, n: sliding_window_view(x, n + 1, axis=-1).max(-1),
    "steps": lambda x, y, n: repeated(x, y),
}  # fmt: skip
INEXACT = {
    "divide",
    "functions",
    "exp",
    "mean",
    "std",
    "sum",
    "cumsum",
    "prod",
    "matmul",
    "by_transpose",
}
"""Where rounding may differ from NumPy's."""
ABRUPT = {
    "floor_divide", "mod", "compare", "where", "choose", "round", "argmax", "any", "logical",
    "cast", "shift", "bits", "take", "take_along", "put", "argsort", "steps",
}  # fmt: skip
"""What makes a large difference of a small one."""

StridedAxis = tuple[str, int, int, int]
Program = list[StridedAxis]


def content(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Numbers from 0 to 3 in no order."""
    return np.random.default_rng([seed, *shape]).integers(0, 4, shape, dtype=np.uint8)


def in_float32(function: Any, x: Any, **keywords: Any) -> Any:
    """Ours adds narrow floats in float32 and rounds once; NumPy would round every sum."""
    result = function(x, **keywords)
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.kind in "iub" or x.itemsize > 2:
        return result
    return function(x.astype(np.float32), **keywords).astype(result.dtype)


def written(x: Any, n: int) -> Any:
    y = x.copy()
    y[n % 2 :: 2] += y[:1]
    return y


def whole(x: Any) -> Any:
    """Integers for places."""
    return np.abs(x).astype(np.int32)


def places(x: Any, count: int) -> Any:
    return whole(x.reshape(-1)) % count


def put(x: Any, place: Any) -> Any:
    y = x.copy()
    y[place] = x[-1]
    return y


def repeated(x: Any, y: Any) -> Any:
    for _ in range(18):
        x = np.maximum(np.minimum(x, y), 1 - x)
    return x


def extended(made: list[Any], step: StridedAxis) -> Any:
    """The step's result."""
    name, first, second, number = step
    return STEPS[name](made[first % len(made)], made[second % len(made)], number)


def execute(program: Program, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """The last three results."""
    made = list(arrays)
    for step in program:
        made.append(extended(made, step))
    return tuple(made[-3:])


EDGES = st.sampled_from([127, 128, 129, 511, 513])
FEW = st.sampled_from([1, 1, 2, 2, 3, 3, 5, 5, 0])


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    """Small ones, every other with one long axis."""
    shape = [draw(FEW) for _ in range(draw(st.integers(0, 4)))]
    if shape and draw(st.booleans()):
        shape[draw(st.integers(0, len(shape) - 1))] = draw(EDGES)
    return tuple(shape)


TRIES = 3
"""Steps drawn for one that is kept, at most."""


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, tuple[np.ndarray, ...]]:
    """Inputs and steps that NumPy executes without complaint and without losing integers."""
    shape, dtype = draw(shapes()), draw(st.sampled_from(FORMATS))
    others = [shape, shape[-1:], shape[::-1], (*shape[:-1], 1) if shape else ()]
    kinds = [dtype, draw(st.sampled_from([dtype, dtype, *FORMATS]))]
    seed = draw(st.integers(0, 2**16))
    arrays = tuple(
        values(as_spec(f"{k}{list(s)}"), seed + i)
        for i, (k, s) in enumerate(zip(kinds, [shape, draw(st.sampled_from(others))], strict=True))
    )
    index = st.integers(0, 7)
    step = st.tuples(st.sampled_from(sorted(STEPS)), index, index, st.integers(0, 4))
    kept: Program = []
    made: list[Any] = list(arrays)
    count = draw(st.integers(3, 12))
    for _ in range(TRIES * count):
        if len(kept) == count:
            break
        one = draw(step)
        result = sound(made, one) if is_stable([*kept, one]) else None
        if result is not None:
            kept.append(one)
            made.append(result)
    return kept, arrays


def values(spec: Spec, seed: int) -> np.ndarray:
    """Small numbers; of integers sometimes any."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0 if spec.dtype.min == 0 else -6, 7, spec.shape)
    if spec.dtype is resolve("bool"):
        return np.asarray(numbers > 3)
    if spec.dtype.is_integer and seed % 3 == 0:  # the whole range
        info = np.iinfo(spec.storage)
        return rng.integers(info.min, info.max, spec.shape, spec.storage, endpoint=True)
    return cast(np.asarray(numbers, np.float32) / (4 if spec.dtype.is_float else 1), spec.dtype)


def is_stable(program: Program) -> bool:
    """No abrupt step after an inexact one."""
    names = [step[0] for step in program]
    first = next((at for at, name in enumerate(names) if name in INEXACT), len(names))
    return not ABRUPT & set(names[first:])


def sound(made: list[Any], step: StridedAxis) -> Any:
    """The step's result, if NumPy gives one, of modest numbers that 32 bits hold. Float formulas
    are given numbers that leave room for what they cancel."""
    if step[0] in INEXACT and max(size_of(made[at % len(made)]) for at in step[1:3]) > 2**10:
        return None
    try:
        with np.errstate(all="ignore"):
            last = extended(made, step)
    except (TypeError, ValueError, ArithmeticError, IndexError):
        return None
    if not isinstance(last, (np.ndarray, np.generic)) or last.size > 2**13:
        return None
    if last.dtype.name.startswith(("complex", "object", "uint64")):
        return None
    modest = 2.0**31 if last.dtype.kind in "iub" else 2.0**7 if last.itemsize == 1 else 2.0**15
    largest = size_of(last)
    return last if largest < modest or last.dtype == np.uint32 else None


def size_of(array: Any) -> float:
    """The largest magnitude; NaN where there is one."""
    with np.errstate(all="ignore"):
        return float(np.abs(array.astype(np.float64)).max(initial=0))


def epsilon_of(array: Any) -> float:
    """Of the array's float format, at least float32's."""
    exact = array.dtype.kind in "iub"
    return 2.0**-23 if exact else max(2.0**-23, float(ml_dtypes.finfo(array.dtype).eps))


def epsilons(program: Program, arrays: tuple[Any, ...]) -> list[float]:
    """For each of the last three results, that of the coarsest format it was made of."""
    made = list(arrays)
    found = [epsilon_of(a) for a in arrays]
    for step in program:
        made.append(np.asarray(extended(made, step)))
        given = (found[at % len(found)] for at in step[1:3])
        found.append(max(epsilon_of(made[-1]), *given))
    return found[-3:]


def is_close(ours: np.ndarray, expected: np.ndarray, epsilon: float) -> bool:
    """Integers equal; floats within 16 roundings of the largest."""
    if ours.dtype.kind in "iub":
        return bool((ours == expected).all())
    a, b = ours.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return bool((same | (np.abs(a - b) <= 16 * epsilon * np.abs(b).max(initial=1))).all())


def outcome(case: tuple[Program, tuple[np.ndarray, ...]], run_source: Any) -> str:
    """What became of the program: "lowered", or the reason in REASONS why it was not. Raises
    AssertionError for wrong results and other reasons."""
    program, arrays = case
    try:
        kernel = compile(lambda *given: execute(program, given), *arrays)
    except TraceError as rejected:
        reason = next((r for r in REASONS if r in str(rejected)), None)
        assert reason is not None, rejected
        return reason
    with np.errstate(all="ignore"):
        expected = [np.asarray(a) for a in execute(program, arrays)]
        with tempfile.TemporaryDirectory() as folder:
            results = kernel.results(run_source(kernel, Path(folder), arrays), arrays)
        results = results if len(expected) > 1 else (results,)
        roundings = epsilons(program, arrays)
        for ours, numpys, epsilon in zip(results, expected, roundings, strict=True):
            target = narrow(numpys.dtype)
            storage = np.dtype(bool) if target is resolve("bool") else target.storage
            assert (ours.shape, ours.dtype) == (numpys.shape, storage)
            assert is_close(ours, numpys.astype(storage), epsilon)
    return "lowered"


def check_programs(count: int, run_source: Any) -> Counter[str]:
    """So many programs, always the same ones; how many ended in which way."""
    outcomes: Counter[str] = Counter()

    # Not shrunk: a smaller program takes minutes, and the first one says enough.
    @settings(
        max_examples=count, deadline=None, derandomize=True, database=None, phases=[Phase.generate]
    )
    @given(case=programs())
    def check(case: tuple[Program, tuple[np.ndarray, ...]]) -> None:
        if case[0]:
            outcomes[outcome(case, run_source)] += 1

    check()
    return outcomes


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_random_programs_give_numpys_values_through_their_source(source_results):
    outcomes = check_programs(500, source_results)

    assert outcomes["lowered"] >= LOWERED * outcomes.total(), outcomes


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_random_programs(source_results):
    outcomes = check_programs(5100, source_results)  # a few are empty

    assert outcomes["lowered"] >= LOWERED * outcomes.total(), outcomes
