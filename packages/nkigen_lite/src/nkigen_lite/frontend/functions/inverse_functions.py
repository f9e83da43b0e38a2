"""Angles from sines, cosines and tangents; the inverse of cosh. In float32."""

from __future__ import annotations

from math import inf, log, nan, pi
from typing import Any

import numpy as np

from nkigen_lite.frontend.functions.formulas import in_float32

_STEEP, _FLAT = 2.414213562373095, 0.4142135623730950
"""tan 3π/8 and tan π/8."""
_LARGEST = 2.0**40
"""arctan of more is π/2 in float32; within the range that is documented for the reciprocal."""


def _near_zero(t: Any) -> Any:
    """arctan t for |t| ≤ tan π/8. Coefficients: Cephes, single precision, atanf."""
    z = t * t
    p = ((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1
    return p * z * t + t


def arctan(x: Any) -> Any:
    """arctan u = offset + arctan t, t = u, (u - 1) / (u + 1) or -1 / u, for u = |x|."""
    size = np.minimum(np.abs(x), np.float32(_LARGEST))
    is_steep, is_flat = size > _STEEP, size <= _FLAT
    above = np.where(is_steep, -1, np.where(is_flat, size, size - 1))
    below = np.where(is_steep, size, np.where(is_flat, 1, size + 1))
    offset = np.where(is_steep, pi / 2, np.where(is_flat, 0, pi / 4))
    return np.copysign(_near_zero(above / below) + offset, x)


def ratio_of(small: Any, large: Any) -> Any:
    """small / large; 0 / 0 is 0. Scaled where the larger's reciprocal is not a normal number."""
    scale = np.where(large < 2.0**-80, 2.0**60, np.where(large > 2.0**100, 2.0**-24, 1))
    return (small * scale) / np.where(large == 0, 1, large * scale)


def arctan2(y: Any, x: Any) -> Any:
    """The angle of the point (x, y): of the smaller side over the larger, then reflected."""
    a, b = np.abs(x), np.abs(y)
    large, small = np.maximum(a, b), np.minimum(a, b)
    ratio = np.where(small == inf, 1, ratio_of(small, large))
    angle = arctan(ratio)
    angle = np.where(b > a, pi / 2 - angle, angle)
    return np.copysign(np.where(np.signbit(x), pi - angle, angle), y)


def arcsin(x: Any) -> Any:
    """The angle of (√(1 - x²), x)."""
    return arctan2(x, np.sqrt((1 - x) * (1 + x)))


def arccos(x: Any) -> Any:
    """The angle of (x, √(1 - x²))."""
    return arctan2(np.sqrt((1 - x) * (1 + x)), x)


def arccosh(x: Any) -> Any:
    """log(1 + t + √(2t + t²)) for t = x - 1; NaN below 1."""
    t = np.minimum(x, 1e9) - 1
    near = np.log1p(t + np.sqrt(t * (t + 2)))
    far = np.log(np.maximum(x, 1)) + log(2)
    return np.where(x < 1, nan, np.where(x < 1e9, near, far))


for _formula in (arctan, arctan2, arcsin, arccos, arccosh):
    in_float32(_formula.__name__, _formula)
