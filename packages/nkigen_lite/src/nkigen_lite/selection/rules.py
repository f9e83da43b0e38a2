"""The selection rule of every operation that a group of tiles can contain."""

from __future__ import annotations

from nkigen_lite.selection import arithmetic, copies, integers
from nkigen_lite.selection.engine_operations import (
    ACTIVATIONS,
    ALU,
    BITS,
    COPIES,
    EXACT,
    REDUCTIONS,
    SCANS,
)
from nkigen_lite.selection.selector import Rule

RULES: dict[str, Rule] = {
    **dict.fromkeys(ACTIVATIONS, arithmetic.activation),
    **dict.fromkeys([*ALU, "negative", "abs"], arithmetic.elementwise),
    "reciprocal": arithmetic.reciprocal,
    **dict.fromkeys(REDUCTIONS, arithmetic.reduced),
    **dict.fromkeys(SCANS, arithmetic.scanned),
    "where": copies.where,
    **dict.fromkeys(COPIES, copies.copy),
    **dict.fromkeys([*BITS, "invert"], integers.bitwise),
    **dict.fromkeys(EXACT, integers.exact),
    "bitcast": integers.reinterpreted,
    "low_bits": integers.low_bits,
}
