"""Floats rounded to integers, in the float32 arithmetic of the engines."""

from __future__ import annotations

import numpy as np

from nkigen_lite.ops._formula import Expr, choose
from nkigen_lite.ops._record import FLOAT_ONLY, ErrorBound, Op, elementwise

_ROUNDER = 1.5 * 2.0**23
"""x + _ROUNDER - _ROUNDER is the integer nearest to x, for |x| ≤ 2²²."""
_SIGN = -(2**31)
"""The bit of the sign."""
_INTEGERS_FROM = 2.0**23
"""float32 numbers of this magnitude and above are integers; below, adding it rounds to one."""


def _rounded_magnitude(size: Expr) -> Expr:
    """rint of numbers ≥ 0: adding 2²³ leaves no room for a fraction, ties go to even."""
    near = (size + _INTEGERS_FROM) - _INTEGERS_FROM
    return choose(size < _INTEGERS_FROM, near, size)


def rint_formula(x: Expr) -> Expr:
    """The nearest integer, ties to even; zeros lose their sign, NaN stays."""
    return _rounded_magnitude(x.call("abs")) * x.call("sign")


def _signed(found: Expr, x: Expr) -> Expr:
    """The number with the sign of x, which is its own but for zeros."""
    return (found.bits() | (x.bits() & _SIGN)).bits(x.dtype)


def _signed_rint(x: Expr) -> Expr:
    return _signed(_rounded_magnitude(x.call("abs")), x)


def trunc_formula(x: Expr) -> Expr:
    """Towards zero; zeros lose their sign."""
    return _truncated_magnitude(x.call("abs")) * x.call("sign")


def _truncated_magnitude(size: Expr) -> Expr:
    near = _rounded_magnitude(size)
    return near - (near > size).to(size.dtype)


def _signed_trunc(x: Expr) -> Expr:
    return _signed(_truncated_magnitude(x.call("abs")), x)


def _floor_formula(x: Expr) -> Expr:
    """Down."""
    near = rint_formula(x)
    return _signed(near - (near > x).to(x.dtype), x)


def _ceil_formula(x: Expr) -> Expr:
    """Up."""
    near = rint_formula(x)
    return _signed(near + (near < x).to(x.dtype), x)


def nearest(x: Expr) -> Expr:
    """The nearest integer, ties to even, for |x| ≤ 2²²."""
    return (x + _ROUNDER) - _ROUNDER


ROUNDINGS: tuple[Op, ...] = tuple(
    elementwise(
        name, meaning, FLOAT_ONLY, "x", numpy=(name,), decomposition=formula, error=ErrorBound(0, 0)
    )
    for name, meaning, formula in (
        ("rint", np.rint, _signed_rint),
        ("trunc", np.trunc, _signed_trunc),
        ("floor", np.floor, _floor_formula),
        ("ceil", np.ceil, _ceil_formula),
    )
)
