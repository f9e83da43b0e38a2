"""NumPy's answer and ours: inputs of every format, and what counts as the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nki_dtypes import DType, cast, resolve
from nkigen_lite import Spec, as_spec, narrow, trace


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
    it sums in another order. What NumPy refuses is refused with an error of the same class.
    """
    try:
        with np.errstate(all="ignore"):
            expected = function(*[np.array(a) for a in arrays])
    except (TypeError, ValueError) as refused:
        with pytest.raises(TypeError if isinstance(refused, TypeError) else ValueError):
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
