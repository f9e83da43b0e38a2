"""Random programs: traced and run they give NumPy's values; passes do not change what they give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nki_dtypes import cast, resolve
from nkigen_lite import Graph, Spec, as_spec, narrow, parse_graph, trace
from nkigen_lite.passes import canonicalize, check_pass, decompose
from nkigen_lite.tensors.errors import TraceError

FORMATS = (
    "f32", "f16", "bf16", "tf32", "e4m3", "e4m3fn", "e5m2", "int8", "int16", "int32", "uint8",
    "uint16", "uint32", "bool",
)  # fmt: skip
SIZES = st.sampled_from([0, 1, 1, 2, 3, 5, 127, 128, 129])

# Each takes the arrays so far and one number to choose by; what does not fit is left out.
STEPS: dict[str, Callable[[Any, Any, int], Any]] = {
    "add": lambda x, y, n: x + y,
    "subtract": lambda x, y, n: x - y,
    "multiply": lambda x, y, n: x * y,
    "scale": lambda x, y, n: x * (n - 2) + 1,
    "half": lambda x, y, n: x * 0.5,
    "divide": lambda x, y, n: x / (np.abs(y) + 1),
    "floor_divide": lambda x, y, n: x // (n + 1),
    "mod": lambda x, y, n: x % (n + 1),
    "maximum": lambda x, y, n: np.maximum(x, y),
    "compare": lambda x, y, n: [np.less, np.equal, np.greater_equal][n % 3](x, y),
    "where": lambda x, y, n: np.where(x > 1, y, x),
    "clip": lambda x, y, n: np.clip(x, 0, n),
    "abs": lambda x, y, n: np.abs(x),
    "negative": lambda x, y, n: -x,
    "tanh": lambda x, y, n: np.tanh(x),
    "exp": lambda x, y, n: np.exp(-np.abs(x)),
    "sin": lambda x, y, n: np.sin(x),
    "round": lambda x, y, n: [np.floor, np.ceil, np.rint, np.trunc][n % 4](x),
    "square": lambda x, y, n: x**2,
    "shift": lambda x, y, n: x << n,
    "bits": lambda x, y, n: (x & y) | n,
    "logical": lambda x, y, n: np.logical_xor(x, y),
    "sum": lambda x, y, n: _in_float32(np.sum, x, axis=n % x.ndim, keepdims=n > 2),
    "max": lambda x, y, n: x.max(axis=-1),
    "mean": lambda x, y, n: _in_float32(np.mean, x),
    "any": lambda x, y, n: x.any(axis=0),
    "argmax": lambda x, y, n: np.argmax(x, axis=n % x.ndim),
    "matmul": lambda x, y, n: x @ y,
    "outer": lambda x, y, n: x.reshape(-1, 1)[:5] @ y.reshape(1, -1)[:, :5],
    "transpose": lambda x, y, n: x.T,
    "flatten": lambda x, y, n: x.reshape(-1),
    "slice": lambda x, y, n: x[n % 2 :: n + 1],
    "reverse": lambda x, y, n: x[..., ::-1],
    "new_axis": lambda x, y, n: x[:, None],
    "row": lambda x, y, n: x[-1],
    "concatenate": lambda x, y, n: np.concatenate([x, x[:1], y]),
    "stack": lambda x, y, n: np.stack([x, x]),
    "tril": lambda x, y, n: np.tril(x, n - 2),
    "narrow": lambda x, y, n: x.astype([np.int32, np.float32, np.float16, bool][n % 4]),
    "write": lambda x, y, n: _written(x, n),
}


def _in_float32(function: Any, x: Any, **keywords: Any) -> Any:
    """Ours adds narrow floats in float32 and rounds once; NumPy would round every sum."""
    result = function(x, **keywords)
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.kind in "iub" or x.itemsize > 2:
        return result
    return function(x.astype(np.float32), **keywords).astype(result.dtype)


def _written(x: Any, n: int) -> Any:
    y = x.copy()
    y[n % 2 :: 2] += y[:1]
    return y


# Where rounding may differ from NumPy's; and what makes a large difference of a small one.
INEXACT = {"divide", "tanh", "exp", "sin", "mean", "sum", "matmul", "outer"}
ABRUPT = {
    "floor_divide", "mod", "compare", "where", "round", "argmax", "any", "logical", "narrow",
    "shift", "bits",
}  # fmt: skip

Step = tuple[str, int, int, int]
Program = list[Step]


def extended(made: list[Any], step: Step) -> Any:
    """The step's result."""
    name, first, second, number = step
    return STEPS[name](made[first % len(made)], made[second % len(made)], number)


def execute(program: Program, arrays: tuple[Any, ...]) -> list[Any]:
    """The inputs and every step's result."""
    made = list(arrays)
    for step in program:
        made.append(extended(made, step))
    return made


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, tuple[np.ndarray, ...]]:
    """Inputs and steps that NumPy executes without complaint and without losing integers."""
    rank, dtype = draw(st.integers(0, 4)), draw(st.sampled_from(FORMATS))
    shape = tuple(draw(SIZES) if d < 2 else draw(st.sampled_from([1, 2, 3])) for d in range(rank))
    others = [shape, shape[-1:], shape[::-1]]
    shapes = [shape, draw(st.sampled_from(others))]
    kinds = [dtype, draw(st.sampled_from([dtype, dtype, *FORMATS]))]
    seed = draw(st.integers(0, 2**16))
    arrays = tuple(
        _values(as_spec(f"{k}{list(s)}"), seed + i)
        for i, (k, s) in enumerate(zip(kinds, shapes, strict=True))
    )
    index = st.integers(0, 7)
    step = st.tuples(st.sampled_from(sorted(STEPS)), index, index, st.integers(0, 4))
    kept: Program = []
    made: list[Any] = list(arrays)
    for one in draw(st.lists(step, min_size=3, max_size=12)):
        result = _sound(made, one) if _is_stable([*kept, one]) else None
        if result is not None:
            kept.append(one)
            made.append(result)
    return kept, arrays


def _values(spec: Spec, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0 if spec.dtype.name.startswith(("u", "b")) else -6, 7, spec.shape)
    if spec.dtype is resolve("bool"):
        return np.asarray(numbers > 3)
    return cast(np.asarray(numbers, np.float32) / (1 if spec.dtype.is_integer else 4), spec.dtype)


def _is_stable(program: Program) -> bool:
    """No abrupt step after an inexact one."""
    names = [step[0] for step in program]
    first = next((at for at, name in enumerate(names) if name in INEXACT), len(names))
    return not ABRUPT & set(names[first:])


def _sound(made: list[Any], step: Step) -> Any:
    """The step's result, if NumPy gives one and it is of modest numbers that 32 bits hold."""
    try:
        with np.errstate(all="ignore"):
            last = extended(made, step)
    except (TypeError, ValueError, ArithmeticError, IndexError):
        return None
    if not isinstance(last, (np.ndarray, np.generic)) or last.size > 2**17:
        return None
    if last.dtype.name.startswith(("complex", "object")):
        return None
    with np.errstate(all="ignore"):
        largest = np.abs(last.astype(np.float64)).max(initial=0)
    return last if not largest >= 2**20 else None


def _traced(program: Program, arrays: tuple[np.ndarray, ...]) -> Graph | None:
    """None where it is rejected, which only uint32 beside signed integers is."""
    try:
        return trace(lambda *given: tuple(execute(program, given)[-3:]), *arrays)
    except TraceError as rejected:
        assert "uint32 with signed integers" in str(rejected)
        return None


def check_values(case: tuple[Program, tuple[np.ndarray, ...]]) -> None:
    program, arrays = case
    graph = _traced(program, arrays)
    if graph is None:
        return
    assert parse_graph(str(graph)) == graph
    with np.errstate(all="ignore"):
        made = execute(program, arrays)
    for ours, numpys in zip(graph.run(*arrays), made[-3:], strict=True):
        target = narrow(numpys.dtype)
        assert ours.shape == numpys.shape
        storage = np.dtype(bool) if target is resolve("bool") else target.storage
        assert ours.dtype == storage
        with np.errstate(all="ignore"):
            assert _is_close(ours, np.asarray(numpys).astype(storage), _epsilon(made))


def _epsilon(made: list[Any]) -> float:
    """The coarsest rounding anywhere in the program, at least float32's."""
    floats = {a.dtype for a in made if a.dtype.kind not in "iub"}
    return max([2.0**-23, *(float(ml_dtypes.finfo(d).eps) for d in floats)])


def _is_close(ours: np.ndarray, expected: np.ndarray, epsilon: float) -> bool:
    """Integers equal; floats within 16 roundings of the largest."""
    if ours.dtype.kind in "iub":
        return bool((ours == expected).all())
    a, b = ours.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    return bool((same | (np.abs(a - b) <= 16 * epsilon * np.abs(b).max(initial=1))).all())


def check_passes(case: tuple[Program, tuple[np.ndarray, ...]]) -> None:
    program, arrays = case
    graph = _traced(program, arrays)
    if graph is not None:
        form = check_pass("canonicalize", graph, canonicalize(graph), arrays)
        check_pass("decompose", form, decompose(form), arrays)


def _with_programs(count: int) -> Callable[[Callable[[Any], None]], Callable[[], None]]:
    """A test of so many programs, always the same ones."""

    def decorate(check: Callable[[Any], None]) -> Callable[[], None]:
        repeated = settings(max_examples=count, deadline=None, derandomize=True, database=None)
        quiet = pytest.mark.filterwarnings("ignore:Mean of empty slice")
        return quiet(repeated(given(case=programs())(check)))

    return decorate


@_with_programs(500)
def test_traced_programs_have_numpys_types_shapes_and_values(case):
    check_values(case)


@_with_programs(150)
def test_passes_do_not_change_what_programs_compute(case):
    check_passes(case)


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@_with_programs(5000)
def test_many_traced_programs(case):
    check_values(case)


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@_with_programs(1500)
def test_passes_on_many_programs(case):
    check_passes(case)
