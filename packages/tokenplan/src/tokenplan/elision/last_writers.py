"""Which bytes of a tensor were written again since, box by box, by operations outside of loops."""

from __future__ import annotations

from math import prod

import numpy as np

MOST_CELLS = 2**16

Digits = list[tuple[np.ndarray, np.ndarray]]
"""Of each digit: the first value of every access, and one past its last."""


class Overwritten:
    """The last write of each cell of the grid that the ends of all boxes make.

    With too many cells nothing is remembered, and nothing counts as overwritten.
    """

    def __init__(self, digits: Digits) -> None:
        cuts = [np.unique(np.concatenate(both)) for both in digits]
        self.low = [
            np.searchsorted(c, low).tolist() for c, (low, _) in zip(cuts, digits, strict=True)
        ]
        self.high = [np.searchsorted(c, h).tolist() for c, (_, h) in zip(cuts, digits, strict=True)]
        shape = [len(c) - 1 for c in cuts]
        self.by = np.full(shape, -1, np.int32) if prod(shape) <= MOST_CELLS else None

    def write(self, access: int) -> None:
        """An access wrote every byte of its box."""
        if self.by is not None:
            self.by[self._cells(access)] = access

    def covers(self, access: int) -> bool:
        """Whether each byte of the access's box was written by a later access."""
        return self.by is not None and bool(self.by[self._cells(access)].min() > access)

    def _cells(self, access: int) -> tuple[slice, ...]:
        ends = zip(self.low, self.high, strict=True)
        return tuple([slice(low[access], high[access]) for low, high in ends])
