"""Functions of ScalarE at zero, which lies outside the range that documents promise for them.

The engine is asked for f(1) there, and what NumPy gives for zero is put in its place. No guard is
made where a bound proves that no element is zero (`bounds`).
"""

from __future__ import annotations

from math import inf

from neuroncore.activations import ACTIVATIONS
from nki_dtypes import float32
from nkigen_lite.ops import Expr, choose
from nkigen_lite.passes.bounds import is_never_zero, least
from nkigen_lite.passes.expression import expr, result
from nkigen_lite.passes.rewriting import Match, RewriteRule, of

_STEEP = 2.0**75
"""x times this is 0 for x = 0, and for every other float32 x > 0 no less than √x."""


def may_be_zero(m: Match) -> bool:
    """Whether nothing proves that the engine's function is never asked for zero."""
    return not is_never_zero(m.build, m["x"])


def leaves_range(m: Match) -> bool:
    """Whether nothing proves that all elements are in the range of the engine's function."""
    return least(m.build, m["x"]) < ACTIVATIONS[m.root.op].valid[0]


def _ones_for_zeros(x: Expr) -> Expr:
    return (x == 0.0).to(float32) + x


def sqrt(m: Match) -> str:
    """√x; ±0 for ±0."""
    x = expr(m, "x")
    return result(m, (x * _STEEP).call("minimum", _ones_for_zeros(x).call("sqrt")))


def rsqrt(m: Match) -> str:
    """1 / √x; ±∞ for ±0."""
    return result(m, expr(m, "x").call("sqrt").call("reciprocal"))


def log(m: Match) -> str:
    """log x; -∞ for ±0."""
    x = expr(m, "x")
    return result(m, choose(x == 0.0, -inf, _ones_for_zeros(x).call("log")))


RULES = (
    RewriteRule("sqrt_at_zero", of("sqrt", "x"), sqrt, may_be_zero),
    RewriteRule("rsqrt_at_zero", of("rsqrt", "x"), rsqrt, leaves_range),
    RewriteRule("log_at_zero", of("log", "x"), log, may_be_zero),
)
