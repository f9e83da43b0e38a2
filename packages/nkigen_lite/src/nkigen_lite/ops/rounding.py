"""Floats rounded to integers, in the float32 arithmetic of the engines."""

from __future__ import annotations

import numpy as np

from nkigen_lite.ops._formula import Expr, choose
from nkigen_lite.ops._record import FLOAT_ONLY, ErrorBound, Op, elementwise

_ROUNDER = 1.5 * 2.0**23
"""x + _ROUNDER - _ROUNDER is the integer nearest to x, for |x| ≤ 2²²."""
_INTEGERS_FROM = 2.0**23
"""float32 numbers of this magnitude and above are integers; below, adding it rounds to one."""


def _rounded_magnitude(size: Expr) -> Expr:
    """rint of numbers ≥ 0: adding 2²³ leaves no room for a fraction, ties go to even."""
    near = (size + _INTEGERS_FROM) - _INTEGERS_FROM
    return choose(size < _INTEGERS_FROM, near, size)


def rint_formula(x: Expr) -> Expr:
    """The nearest integer, ties to even; -0 and NaN stay."""
    return _rounded_magnitude(x.call("abs")) * x.call("sign")


def trunc_formula(x: Expr) -> Expr:
    """Towards zero."""
    size = x.call("abs")
    near = _rounded_magnitude(size)
    return (near - (near > size).to(x.dtype)) * x.call("sign")


def _floor_formula(x: Expr) -> Expr:
    """Down."""
    near = rint_formula(x)
    return near - (near > x).to(x.dtype)


def _ceil_formula(x: Expr) -> Expr:
    """Up."""
    near = rint_formula(x)
    return near + (near < x).to(x.dtype)


def nearest(x: Expr) -> Expr:
    """The nearest integer, ties to even, for |x| ≤ 2²²."""
    return (x + _ROUNDER) - _ROUNDER


ROUNDINGS: tuple[Op, ...] = tuple(
    elementwise(
        name, meaning, FLOAT_ONLY, "x", numpy=(name,), decomposition=formula, error=ErrorBound(0, 0)
    )
    for name, meaning, formula in (
        ("rint", np.rint, rint_formula),
        ("trunc", np.trunc, trunc_formula),
        ("floor", np.floor, _floor_formula),
        ("ceil", np.ceil, _ceil_formula),
    )
)
