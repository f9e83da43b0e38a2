"""Windows of flat elements: where an array lies in another, and strided arrays over it."""

from __future__ import annotations

import numpy as np


def window(
    flat: np.ndarray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> np.ndarray:
    """A strided window of flat elements; NumPy itself checks that it stays inside."""
    item = flat.itemsize
    return np.ndarray(shape, flat.dtype, flat, offset * item, tuple(s * item for s in strides))


def bytes_before(array: np.ndarray, flat: np.ndarray) -> int:
    """How far behind the first byte of `flat` that of `array` lies."""
    return array.__array_interface__["data"][0] - flat.__array_interface__["data"][0]
