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

EVERY = frozenset(kind for kinds in TRANSFORMS.values() for kind in kinds)
