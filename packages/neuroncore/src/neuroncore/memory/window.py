"""Windows of flat elements: strided arrays, where one begins in another, and filling them."""

from __future__ import annotations

import sys
from functools import cache

import numpy as np

INTERFACE = tuple(map(sys.intern, np.empty(0).__array_interface__))
"""Held here so that they stay interned. NumPy interns the names of its interface whenever it is
asked for one; without another reference they come and go, and Python rebuilds its table of
interned strings now and then: 0.4 to 1 MB at once, in the middle of a run (CPython 3.11, measured).
"""


def address_of(array: np.ndarray) -> int:
    """The address of the first element in the memory of this computer."""
    return array.__array_interface__["data"][0]


def window(
    flat: np.ndarray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
) -> np.ndarray:
    """A strided window of flat elements; NumPy itself checks that it stays inside."""
    item = flat.itemsize
    return np.ndarray(shape, flat.dtype, flat, offset * item, tuple(s * item for s in strides))


def bytes_before(array: np.ndarray, flat: np.ndarray) -> int:
    """How far behind the first byte of `flat` that of `array` lies."""
    return address_of(array) - address_of(flat)


def reach(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, int]:
    """How far before and behind the first element a window extends, in units of the strides."""
    ends = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    return sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends)


def fill(array: np.ndarray, value: float) -> None:
    """Every element becomes `value`, written as the bits of one: NumPy converts a value once per
    element of a dtype of ml_dtypes (bfloat16[128, 512]: 21 µs against 2).
    """
    words, bits = _bits(array.dtype, value)
    array.view(words)[...] = bits


@cache
def _bits(dtype: np.dtype, value: float) -> tuple[np.dtype, np.unsignedinteger]:
    one = np.empty(1, dtype)
    one[...] = value
    words = np.dtype(f"u{dtype.itemsize}")
    return words, one.view(words)[0]
