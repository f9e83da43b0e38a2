"""Matrices and factors that Fourier kernels take as arguments."""

from __future__ import annotations

from typing import Any

import numpy as np


def fourier_256(module: Any, X_real_hbm: Any, X_imag_hbm: Any, actual_height: int) -> Any:  # noqa: N803
    """Hands over the 128-point matrix and the factors exp(-2πi k / 256)."""
    points = np.arange(128)
    matrix = np.exp(-2j * np.pi * np.outer(points, points) / 128)
    factors = np.tile(np.exp(-2j * np.pi * points / 256), (128, 1))
    parts = [part.astype(np.float32) for a in (matrix, factors) for part in (a.real, a.imag)]
    return module._fft1d_radix2_256_masked(X_real_hbm, X_imag_hbm, *parts, actual_height)
