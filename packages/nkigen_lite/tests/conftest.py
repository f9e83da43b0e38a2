"""Inputs of every format, the comparison with NumPy, and kernels run as programs and as source."""

from __future__ import annotations

import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nki_runtime
from nki_dtypes import DType, cast, resolve
from nkigen_lite import Spec, as_spec, narrow, trace
from nkigen_lite.compiler.compile import Compiled, compile, lowered, rewritten
from nkigen_lite.ir import Graph


def values_for(spec: Spec, seed: int = 0) -> np.ndarray:
    """Small numbers with fractions, zeros and repeats; unsigned ones are not negative."""
    rng = np.random.default_rng([seed, spec.size, *spec.shape])
    numbers = rng.integers(-12, 13, spec.shape) / (1 if spec.dtype.is_integer else 4)
    numbers = np.abs(numbers) if spec.dtype.name.startswith(("uint", "bool")) else numbers
    if spec.dtype is resolve("bool"):
        return numbers > 1
    return cast(np.asarray(numbers, np.float32), spec.dtype)


def arrays_for(specs: Sequence[str]) -> list[Any]:
    """One array per spec, different ones."""
    return [values_for(as_spec(s), n) for n, s in enumerate(specs)]


def same(ours: Any, numpys: Any, ulps: float) -> bool:
    """Equal shape and dtype; integers equal; floats within ulps of the dtype or of float32."""
    ours, numpys = np.asarray(ours), np.asarray(numpys)
    if ours.shape != numpys.shape or ours.dtype != numpys.dtype:
        return False
    if ours.dtype.kind in "iub":
        return bool(np.array_equal(ours, numpys))
    epsilon = float(ml_dtypes.finfo(ours.dtype).eps)
    tiny = float(ml_dtypes.finfo(ours.dtype).smallest_subnormal)
    a, b = ours.astype(np.float64), numpys.astype(np.float64)
    finite = np.isfinite(b)
    with np.errstate(invalid="ignore"):
        close = np.abs(a - b) <= ulps * (epsilon * np.abs(b) + tiny)
    return bool(np.all(np.where(finite, close, (a == b) | (np.isnan(a) & np.isnan(b)))))


def as_narrow(result: Any) -> np.ndarray:
    """NumPy's result after the 64 → 32-bit cast."""
    result = np.asarray(result)
    target: DType = narrow(result.dtype)
    storage = np.dtype(bool) if target is resolve("bool") else target.storage
    with np.errstate(all="ignore"):
        return result.astype(storage)


def agree(function: Callable[..., Any], *arrays: Any, ulps: float = 8) -> None:
    """`function` traced and run gives what NumPy gives: shapes, dtypes, values.

    Floats may differ by 8 ulps of the result: NumPy's own float32 functions are exact to 4, and
    it sums in another order. What NumPy rejects is rejected with an error of the same class.
    """
    try:
        with np.errstate(all="ignore"):
            expected = function(*[np.array(a) for a in arrays])
    except (TypeError, ValueError) as rejected:
        with pytest.raises(TypeError if isinstance(rejected, TypeError) else ValueError):
            trace(function, *arrays)
        return
    found = trace(function, *arrays).run(*arrays)
    pairs = (
        zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    )
    for ours, numpys in pairs:
        assert same(ours, as_narrow(numpys), ulps), f"\nours:  {ours!r}\nNumPy: {numpys!r}"


@pytest.fixture(name="agree", scope="session")
def _agree() -> Callable[..., None]:
    return agree


@pytest.fixture(name="arrays_for", scope="session")
def _arrays_for() -> Callable[[Sequence[str]], list[Any]]:
    return arrays_for


@pytest.fixture(name="same", scope="session")
def _same() -> Callable[..., bool]:
    return same


# -- kernels ---------------------------------------------------------------------------------------

_ROUNDING = {"float32": 2**-24, "bfloat16": 2**-9, "float16": 2**-12}
ORDERS = 4
"""Sums in another order, and functions within 4 ulps, may lose two bits more than NumPy does."""


def run_source(kernel: Compiled, folder: Path, arrays: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
    """The emitted source, in a file of its own, called with arrays."""
    file = folder / "kernel.py"
    file.write_text(kernel.source, encoding="utf-8")
    given = [np.array(a) for a in kernel.inputs(*arrays)]
    with nki_runtime.use(nki="0.6", target=kernel.program.target):
        found = runpy.run_path(str(file))[kernel.program.name](*given)
    if found is None:  # every result is empty
        return ()
    return found if isinstance(found, tuple) else (found,)


def reference(
    function: Callable[..., Any], arrays: tuple[Any, ...], wide: bool = True
) -> tuple[np.ndarray, ...]:
    """NumPy's results for the same numbers, in float64 or (`wide` = False) in their own dtypes."""
    given = [np.asarray(a).astype(np.float64) if wide and _is_float(a) else a for a in arrays]
    with np.errstate(all="ignore"):
        found = function(*given)
    return tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))


def _is_float(array: Any) -> bool:
    return np.asarray(array).dtype.kind not in "iub"


@pytest.fixture(name="assert_lowers_right")
def _lowers(tmp_path: Path) -> Callable[..., Compiled]:
    """Compile, run program and source, compare both with float64.

    The error allowed is relative to the largest magnitude of the result: so many roundings of the
    narrowest argument where a test gives their number; otherwise ORDERS times the error that NumPy
    itself makes in the dtypes of the arguments, and ORDERS roundings.
    """

    def check(
        function: Callable[..., Any],
        *arrays: Any,
        roundings: float | None = None,
        **options: Any,
    ) -> Compiled:
        kernel = compile(function, *arrays, **options)
        ours = kernel(*arrays)
        ours = ours if isinstance(ours, tuple) else (ours,)
        sources = run_source(kernel, tmp_path, arrays)
        unit = max(_ROUNDING.get(np.asarray(a).dtype.name, 0) for a in arrays)
        exactly, rounded = (reference(function, arrays, wide) for wide in (True, False))
        for mine, written, exact, numpys in zip(ours, sources, exactly, rounded, strict=True):
            same = np.asarray(written).reshape(mine.shape).view(mine.dtype)
            assert mine.tobytes() == same.tobytes()
            assert mine.shape == exact.shape
            if exact.dtype.kind in "iub":
                assert np.array_equal(mine, exact)
                continue
            scale = max(1e-30, float(np.max(np.abs(exact))))
            worst, of_numpy = (
                np.max(np.abs(result.astype(np.float64) - exact)) / scale
                for result in (mine, numpys)
            )
            allowed = ORDERS * (of_numpy + unit) if roundings is None else roundings * unit
            assert worst <= allowed, f"{worst / unit} roundings, NumPy has {of_numpy / unit}"
        return kernel

    return check


@pytest.fixture(name="exactly")
def _exactly(tmp_path: Path) -> Callable[..., Compiled]:
    """Compile, run program and source: both give NumPy's integers and bool, after 64 → 32 bits."""

    def check(function: Callable[..., Any], *arrays: Any, **options: Any) -> Compiled:
        kernel = compile(function, *arrays, **options)
        ours = kernel(*arrays)
        ours = ours if isinstance(ours, tuple) else (ours,)
        with np.errstate(all="ignore"):
            found = function(*map(np.array, arrays))
        found = found if isinstance(found, tuple) else (found,)
        sources = kernel.results(run_source(kernel, tmp_path, arrays), arrays)
        sources = sources if isinstance(sources, tuple) else (sources,)
        for mine, written, numpys in zip(ours, sources, found, strict=True):
            expected = _in_32_bits(np.asarray(numpys))
            assert (mine.shape, mine.dtype) == (expected.shape, expected.dtype)
            wrong = np.argwhere(mine != expected)
            assert not len(wrong), (wrong[0], mine[tuple(wrong[0])], expected[tuple(wrong[0])])
            assert mine.tobytes() == np.asarray(written).tobytes()
        return kernel

    return check


def _in_32_bits(array: np.ndarray) -> np.ndarray:
    narrow = {"int64": np.int32, "uint64": np.uint32, "float64": np.float32}
    return array.astype(narrow.get(array.dtype.name, array.dtype))


@pytest.fixture(name="of_graph", scope="session")
def _of_graph() -> Callable[[Graph], Compiled]:
    """A graph as a kernel."""

    def make(graph: Graph) -> Compiled:
        return lowered(rewritten(graph), "trn2", "0.6")

    return make


@pytest.fixture(name="normal")
def _normal() -> Callable[..., np.ndarray]:
    """Standard normal numbers, the same for the same shape and seed."""

    def make(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
        rng = np.random.default_rng([seed, *shape])
        return rng.standard_normal(shape).astype(np.float32).astype(dtype)

    return make


@pytest.fixture(name="source_results", scope="session")
def _source_results() -> Callable[..., tuple[np.ndarray, ...]]:
    return run_source


@pytest.fixture(name="moves")
def _moves(tmp_path: Path) -> Callable[..., Compiled]:
    """Compile a function that only moves elements; program and source against NumPy, bit for bit.

    Written arguments are compared too: the program returns them behind the outputs.
    """

    def check(function: Callable[..., Any], *arrays: Any, **options: Any) -> Compiled:
        kernel = compile(function, *arrays, **options)
        mine, sources, numpys = [[np.array(a) for a in arrays] for _ in range(3)]
        ours, exact = kernel(*mine), function(*numpys)
        written = kernel.results(run_source(kernel, tmp_path, arrays), sources)
        ours, written, exact = (_several(r) for r in (ours, written, exact))
        for found, same, wanted in zip(ours, written, map(np.array, exact), strict=True):
            assert found.shape == wanted.shape
            assert found.tobytes() == wanted.tobytes()
            assert same.tobytes() == wanted.tobytes()
        for argument, same, expected in zip(mine, sources, numpys, strict=True):
            assert argument.tobytes() == same.tobytes() == expected.tobytes()
        return kernel

    return check


def _several(results: Any) -> tuple[Any, ...]:
    return () if results is None else results if isinstance(results, tuple) else (results,)


@pytest.fixture(name="versioned_results")
def _versioned_results(tmp_path: Path) -> Callable[..., Any]:
    """The results of the emitted source, run as the version that it is written for."""

    def run(kernel: Compiled, arrays: tuple[Any, ...]) -> Any:
        file = tmp_path / "kernel.py"
        file.write_text(kernel.source, encoding="utf-8")
        given = [np.array(a) for a in kernel.inputs(*arrays)]
        with nki_runtime.use(nki=kernel.program.nki, target=kernel.program.target):
            found = runpy.run_path(str(file))[kernel.program.name](*given)
        return kernel.results(found if isinstance(found, tuple) else (found,), arrays)

    return run


@pytest.fixture(name="bitwise")
def _bitwise(versioned_results: Callable[..., Any]) -> Callable[..., Compiled]:
    """Compile, run program and source: both give NumPy's values, after 64 → 32 bits, bit for bit
    but for the bits of NaN."""

    def check(function: Callable[..., Any], *arrays: Any, nki: str = "0.7") -> Compiled:
        kernel = compile(function, *arrays, nki=nki)
        expected = _several(function(*[np.array(a) for a in arrays]))
        for found in (kernel(*arrays), versioned_results(kernel, arrays)):
            for ours, numpys in zip(_several(found), map(as_narrow, expected), strict=True):
                assert (ours.shape, ours.dtype) == (numpys.shape, numpys.dtype)
                np.testing.assert_array_equal(ours.astype(np.float64), numpys.astype(np.float64))
        return kernel

    return check
