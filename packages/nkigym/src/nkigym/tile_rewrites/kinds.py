"""The kinds of steps, and the transforms that people call them by."""

from __future__ import annotations

from collections.abc import Mapping

REUSE = "reuse"
MERGE_LOADS = "merge loads"
MERGE_CALLS = "merge calls"
MERGE_STORES = "merge stores"

TRANSFORMS: Mapping[str, tuple[str, ...]] = {
    "data-reuse": (REUSE,),
    "operand-merge": (MERGE_LOADS, MERGE_CALLS, MERGE_STORES),
}

REUSE_CALLS = "reuse calls"
WIDEN_CALLS = "widen calls"
LOAD_TWICE = "load twice"

EXTRA: Mapping[str, tuple[str, ...]] = {
    "call-reuse": (REUSE_CALLS,),
    "wide-merge": (WIDEN_CALLS,),
    "duplicate-load": (LOAD_TWICE,),
}
"""Transforms that the public original has not, listed behind its own where they are requested.

Call reuse: of two calls of one operator on the very same tiles, one is left (transposes once for
all that read them); not of sums, whose place the next call of the chain takes. Wide merge: two
calls become one where all operands that have the widening axis touch alike (accumulating matmuls,
up to 512 columns; operations on two tiles). Duplicate load: two loads of one slice become one tile
that contains it twice, side by side, so that operations on two tiles that share it touch in both.
"""

KNOWN: Mapping[str, tuple[str, ...]] = {**TRANSFORMS, **EXTRA}

EVERY = frozenset(kind for kinds in TRANSFORMS.values() for kind in kinds)
