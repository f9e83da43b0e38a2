"""Executed accesses of a tile block, and every two of them that need an order and have none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

SPACING = 1 << 40
"""Bytes from the start of one parameter to the next."""
_AT_ONCE = 256
"""Accesses that are compared with all before them."""
ACQUIRES, RELEASES = ("acquire", "acq_rel"), ("release", "acq_rel")


@dataclass(frozen=True, slots=True)
class TileAccess:
    """One executed load or store."""

    name: str
    line: int
    writes: bool
    order: str
    runs: np.ndarray = field(repr=False)
    """(n, 2): first byte and end of each run of bytes, sorted and disjoint."""
    before: int
    """Accesses that are complete when it starts, as bits."""

    def __str__(self) -> str:
        return f"{self.name} (line {self.line})" if self.line else self.name

    @property
    def needs_order(self) -> bool:
        """Also after or before a load of the same bytes."""
        return self.writes or self.order != "weak"

    @property
    def owners(self) -> set[int]:
        """The parameters that it accesses."""
        return {int(self.runs[0, 0] // SPACING)} if len(self.runs) == 1 else {
            *np.unique(self.runs[:, 0] // SPACING).tolist()}  # fmt: skip

    @property
    def bounds(self) -> tuple[int, int]:
        """The first byte and the end of the last; equal for no byte."""
        return (int(self.runs[0, 0]), int(self.runs[-1, 1])) if len(self.runs) else (0, 0)

    def left(self, arrays: Sequence[np.ndarray]) -> int | None:
        """A parameter of which it accesses bytes outside of the array."""
        first, end = self.bounds
        is_one = first // SPACING == (end - 1) // SPACING
        for owner in [first // SPACING] if is_one else self.owners:
            last = end if is_one else self.runs[self.runs[:, 0] // SPACING == owner][-1, 1]
            is_known = 0 <= owner < len(arrays)
            if not is_known or last - owner * SPACING > arrays[owner].nbytes:
                return owner
        return None


def names_of(function: Any) -> dict[Any, str]:
    """By the token of an access: load, store, store.2 …, in program order."""
    counts: Counter[str] = Counter()
    names = {}
    for op in function.body.walk():
        if op.name.endswith("_tko"):
            kind = op.name.partition("_")[0]
            counts[kind] += 1
            names[op.results[-1]] = kind + f".{counts[kind]}" * (counts[kind] > 1)
    return names


def lost_orders(
    accesses: Sequence[TileAccess], may_alias: Sequence[tuple[int, int]] = ()
) -> Iterator[str]:
    """Every two accesses whose order matters and that no token orders."""
    shared = {frozenset(pair) for pair in may_alias}
    for early, late in _near(accesses, bool(shared)):
        before, after = accesses[early], accesses[late]
        why = None if after.before >> early & 1 else _reason(before, after, shared)
        if why:
            yield f"{before} and {after} {why}, and no token orders them"


def _near(accesses: Sequence[TileAccess], is_any: bool) -> Iterator[tuple[int, int]]:
    """Every two accesses between whose first and last bytes are common ones, or with a memory
    order; is_any: others as well."""
    low, high = np.array([access.bounds for access in accesses], np.int64).reshape(-1, 2).T
    strong = np.array([a.needs_order for a in accesses], bool)
    acquires = np.array([a.order in ACQUIRES for a in accesses], bool)
    always = np.array([is_any or a.order in RELEASES for a in accesses], bool)
    for start in range(0, len(accesses), _AT_ONCE):
        end = min(start + _AT_ONCE, len(accesses))
        late, early = np.arange(start, end)[:, None], np.arange(end)
        found = (low[early] < high[late]) & (high[early] > low[late])
        found &= strong[early] | strong[late]
        found |= acquires[early] | always[late]
        found &= early < late
        yield from ((before, start + n) for n, before in np.argwhere(found).tolist())


def _reason(before: TileAccess, after: TileAccess, shared: set[frozenset[int]]) -> str | None:
    if before.order in ACQUIRES or after.order in RELEASES:
        return "are ordered by acquire or release"
    if not (before.needs_order or after.needs_order) or not len(before.runs) or not len(after.runs):
        return None
    pairs = product(before.owners, after.owners) if shared else ()
    for one, other in filter(lambda pair: frozenset(pair) in shared, pairs):
        return f"access parameters {one} and {other}, which may share bytes"
    byte = _shared_byte(before.runs, after.runs)
    if byte is None:
        return None
    return f"share byte {byte % SPACING} of parameter {byte // SPACING}"


def _shared_byte(a: np.ndarray, b: np.ndarray) -> int | None:
    """The first byte that is in runs of both."""
    at = np.searchsorted(b[:, 1], a[:, 0], side="right")
    reaches = at < len(b)
    both = reaches.copy()
    both[reaches] = b[at[reaches], 0] < a[reaches, 1]
    if not both.any():
        return None
    n = int(np.argmax(both))
    return int(max(a[n, 0], b[at[n], 0]))
