"""Discrete Fourier transforms."""

from __future__ import annotations

import numpy as np
from wide import Array, wide


def _rows_that_are_written(values: Array, count: int) -> tuple[Array, Array]:
    """Real and imaginary part; rows from `count` on are NaN: they are not written."""
    parts = np.stack([values.real, values.imag])
    parts[:, count:] = np.nan
    return parts[0], parts[1]


def transform_with_matrix(
    X_real_hbm: Array,  # noqa: N803
    X_imag_hbm: Array,  # noqa: N803
    W_128_real_hbm: Array,  # noqa: N803
    W_128_imag_hbm: Array,  # noqa: N803
    actual_height: int,
) -> tuple[Array, Array]:
    """Every row x becomes W x."""
    signal = wide(X_real_hbm) + 1j * wide(X_imag_hbm)
    matrix = wide(W_128_real_hbm) + 1j * wide(W_128_imag_hbm)
    return _rows_that_are_written(signal @ matrix.T, actual_height)


def fourier_256(X_real_hbm: Array, X_imag_hbm: Array, actual_height: int) -> tuple[Array, Array]:  # noqa: N803
    """The Fourier transform of every row."""
    signal = wide(X_real_hbm) + 1j * wide(X_imag_hbm)
    return _rows_that_are_written(np.fft.fft(signal, axis=1), actual_height)
