"""Random float programs: the emitted source gives what the graph gives, or the error names why."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nkigen_lite.compile import compile
from nkigen_lite.lower import LoweringError
from nkigen_lite.passes import canonicalize, decompose

# Each takes two arrays so far and a number to choose by; abrupt ones come before inexact ones.
ABRUPT: dict[str, Callable[[Any, Any, int], Any]] = {
    "compare": lambda x, y, n: np.where([np.less, np.greater_equal][n % 2](x, y), x, y),
    "where": lambda x, y, n: np.where(x > 1, y, n),
    "round": lambda x, y, n: [np.floor, np.ceil, np.rint, np.trunc][n % 4](x),
}
SMOOTH: dict[str, Callable[[Any, Any, int], Any]] = {
    "add": lambda x, y, n: x + y,
    "subtract": lambda x, y, n: n - x - y,
    "multiply": lambda x, y, n: x * y,
    "scale": lambda x, y, n: (x + n) * 0.25,
    "divide": lambda x, y, n: x / (np.abs(y) + 1),
    "extremes": lambda x, y, n: np.minimum(np.maximum(x, y), n),
    "functions": lambda x, y, n: [np.tanh, np.sin, np.abs][n % 3](x),
    "exp": lambda x, y, n: np.exp(-np.abs(x)),
    "square": lambda x, y, n: x * x * 0.125,
    "sum": lambda x, y, n: np.sum(x, axis=-1, keepdims=n > 1) * 0.125,
    "max": lambda x, y, n: np.max(x, axis=-1, keepdims=n > 1),
    "mean": lambda x, y, n: np.mean(x, axis=n % x.ndim, keepdims=True),
    "matmul": lambda x, y, n: (x @ y) * 0.125,
    "by_transpose": lambda x, y, n: x @ x.T * 0.125,
    "transpose": lambda x, y, n: x.T,
    "flat": lambda x, y, n: x.reshape(-1),
    "slice": lambda x, y, n: x[n % 2 :: n + 1],
    "new_axis": lambda x, y, n: x[:, None],
}
STEPS = ABRUPT | SMOOTH
SIZES = st.sampled_from([1, 1, 3, 127, 128, 129, 300])
TOLERANCE = {"float32": 2.0**-17, "bfloat16": 2.0**-5, "float16": 2.0**-8}
"""Eight steps of 8 roundings each, relative to the largest of the result."""

Step = tuple[str, int, int, int]


def execute(program: list[Step], arrays: tuple[Any, ...]) -> list[Any]:
    """What the steps make."""
    made = list(arrays)
    for name, first, second, number in program:
        made.append(STEPS[name](made[first % len(made)], made[second % len(made)], number))
    return made[len(arrays) :]


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Step], tuple[np.ndarray, ...], bool]:
    """Steps that NumPy takes, inputs, and whether every step's value is a result."""
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(SIZES) if d < 2 else 2 for d in range(rank))
    shapes = [shape, draw(st.sampled_from([shape, shape[-1:], shape[::-1], (*shape[:-1], 1)]))]
    kind = draw(st.sampled_from([np.float32, np.float32, np.float16, ml_dtypes.bfloat16]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    arrays = tuple((rng.integers(-6, 7, s) / 4).astype(np.float32).astype(kind) for s in shapes)
    count, index = draw(st.integers(0, 2)), st.integers(0, 7)
    kept: list[Step] = []
    for at in range(draw(st.integers(3, 8))):
        names = sorted(ABRUPT) if at < count else sorted(SMOOTH)
        step = (draw(st.sampled_from(names)), draw(index), draw(index), draw(st.integers(0, 3)))
        if _is_sound([*kept, step], arrays):
            kept.append(step)
    return kept, arrays, draw(st.booleans())


def _is_sound(program: list[Step], arrays: tuple[np.ndarray, ...]) -> bool:
    try:
        last = execute(program, arrays)[-1]
    except (TypeError, ValueError, IndexError, ZeroDivisionError):
        return False
    modest = 0 < last.size <= 2**17 and last.dtype.name in TOLERANCE
    return modest and bool(np.abs(last.astype(np.float32)).max() < 2**10)


@settings(max_examples=120, deadline=None, derandomize=True, database=None)
@given(case=programs())
def test_emitted_kernels_give_what_their_graphs_give(case, source_results):
    program, arrays, every = case
    if not program:
        return

    def function(*given: Any) -> Any:
        made = execute(program, given)
        return tuple(made) if every else made[-1]

    try:
        kernel = compile(function, *arrays)
    except LoweringError as refused:
        assert "cannot be lowered" in str(refused)
        return
    expected = decompose(canonicalize(kernel.graph)).run(*arrays)
    with tempfile.TemporaryDirectory() as folder:
        written = source_results(kernel, Path(folder), arrays)
    coarsest = max(TOLERANCE[np.asarray(a).dtype.name] for a in arrays)
    pairs = zip(written, expected if isinstance(expected, tuple) else (expected,), strict=True)
    for ours, graphs in pairs:
        a = np.asarray(ours).reshape(graphs.shape).astype(np.float64)
        b = graphs.astype(np.float64)
        assert np.abs(a - b).max() <= coarsest * max(1.0, np.abs(b).max())
