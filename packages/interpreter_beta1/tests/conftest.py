"""What the tests of the 0.1 language share: inputs, and kernels of one expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nki_beta1 import nki, nl


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261121)


@pytest.fixture
def evaluate() -> Callable[..., np.ndarray]:
    """Run `expression` on tiles loaded from arrays and give the tile that it returns."""

    def run(expression: Callable[..., Any], *arrays: np.ndarray, choice: Any = None) -> np.ndarray:
        @nki.jit
        def kernel(*inputs):
            tile = expression(*(nl.load(x) for x in inputs))
            out = nl.ndarray(tile.shape, dtype=tile.dtype, buffer=nl.shared_hbm)
            nl.store(out, value=tile)
            return out

        return kernel(*arrays)

    return run
