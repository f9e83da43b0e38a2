"""expm1: eˣ - 1 without the loss of digits near 0."""

from __future__ import annotations

import numpy as np

from nkigen_lite.ops._formula import Expr, choose
from nkigen_lite.ops._record import FLOAT_ONLY, ErrorBound, elementwise


def _expm1(x: Expr) -> Expr:
    """Near 0 stretched by x / log eˣ, where eˣ is the rounded one."""
    u = x.call("exp")
    d = u - 1.0
    inside = u.call("maximum", 0.5).call("minimum", 2.0)  # all that the choice below takes
    near = d * (x * inside.call("log").call("reciprocal"))
    far = choose(x.call("abs") < 0.5, near, d)
    return choose(u == 1.0, x, far)


EXPM1 = elementwise(
    "expm1", np.expm1, FLOAT_ONLY, "x", numpy=("expm1",), decomposition=_expm1, error=ErrorBound(5)
)
