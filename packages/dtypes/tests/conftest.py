"""The reference arithmetic and the inputs that several test files share."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

_SEED = 20


def _load(path: Path) -> ModuleType:
    """The tests folder is not a package, and two packages may have files of one name."""
    spec = importlib.util.spec_from_file_location("nki_dtypes_exact", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_EXACT = _load(Path(__file__).parent / "exact.py")


@pytest.fixture(scope="session")
def exact() -> ModuleType:
    """Rounding by exact integer arithmetic."""
    return _EXACT


@pytest.fixture(scope="session")
def float32_bits() -> np.ndarray:
    """2.1 million float32 bit patterns of every exponent, ties, subnormals, inf and NaN."""
    return _EXACT.stratified_float32(_SEED)


@pytest.fixture(scope="session")
def float32_parts(float32_bits: np.ndarray) -> tuple[np.ndarray, ...]:
    """The same as exact sign, significand, exponent and NaN mask."""
    return _EXACT.float32_parts(float32_bits)
