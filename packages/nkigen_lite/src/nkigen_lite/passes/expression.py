"""Operands and results of a match as formulas."""

from __future__ import annotations

from nki_dtypes import DType, float32
from nkigen_lite.ops import Expr
from nkigen_lite.passes.rewriting import Match


def expr(m: Match, name: str, dtype: DType = float32) -> Expr:
    """What stands under this name in the pattern, as float32 unless said."""
    return Expr(m, m[name]).to(dtype)


def result(m: Match, found: Expr) -> str:
    """The formula's value in the dtype and shape of what it replaces."""
    return m.shaped(found.to(m.dtype).value)
