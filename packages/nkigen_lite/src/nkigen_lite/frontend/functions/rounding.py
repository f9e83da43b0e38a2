"""`np.round` to a number of decimals, and to tens, hundreds, …"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from nki_dtypes import float32
from nkigen_lite.frontend.arrays import copies
from nkigen_lite.frontend.arrays.array import Array
from nkigen_lite.frontend.arrays.registry import implements
from nkigen_lite.tensors.errors import ArgumentError


@implements("round", "around")
def rounded(a: Array, decimals: int = 0) -> Any:
    """`np.round`: rint(a · 10ᵈ) / 10ᵈ, each step rounded to a's dtype; ties to even."""
    if decimals < 0:
        return _to_tens(a, 10**-decimals)
    if decimals > 0 and a.spec.dtype.is_float:
        scale = 10.0**decimals
        whole = np.rint(np.multiply(a, scale).astype(a.dtype))
        return np.divide(whole, scale).astype(a.dtype)
    makes = np.round(np.zeros(0, a.dtype)).dtype  # bool becomes float16
    return np.rint(a) if a.spec.dtype.is_float else copies.astype(a, makes)


def _to_tens(a: Array, lot: int) -> Any:
    """Multiples of 10, 100, …"""
    if a.dtype == bool:
        raise ArgumentError("np.round: bool has no tens", got=str(a.spec))
    if not a.spec.dtype.is_float:
        return _of_integers(a, lot)
    if a.spec.dtype is not float32:
        tens = np.rint(np.divide(a, float(lot)).astype(a.dtype))
        return np.multiply(tens, float(lot)).astype(a.dtype)
    inside = np.where(np.abs(a) < inf, a, 0)
    return np.where(np.abs(a) < inf, _nearest(inside, float(lot)), a)


def _of_integers(a: Array, lot: int) -> Any:
    """Exact, and wraps; 0 where half of the lot is beyond the dtype."""
    held = a.spec.dtype
    if lot > 2 * held.max:
        return np.zeros_like(a)[()] if a.is_scalar else np.zeros_like(a)
    wide = a.astype(np.int32) if held.bits < 32 else a
    return _nearest(wide, lot).astype(a.dtype)


def _nearest(x: Array, lot: Any) -> Any:
    """The multiple of the lot that is nearest; of two the even one. Quotient and rest are exact."""
    count, rest = x // lot, x % lot
    more, less = rest > lot - rest, rest < lot - rest
    is_odd = count % 2 == 1
    up = more | (~less & is_odd)
    return (count + up.astype(x.dtype)) * lot
