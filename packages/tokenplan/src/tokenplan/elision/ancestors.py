"""What operations outside of loops are known to wait for, themselves and through others."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


class Ancestors:
    """A set of bits per operation; operations go by their number."""

    def __init__(self, operations: int) -> None:
        self.bytes = operations // 8 + 1
        self.rows: dict[int, int] = {}

    def add(self, op: int, sources: Iterable[int], known: int) -> None:
        """The operation waits for these, and for all that they wait for, which is `known`."""
        for source in sources:
            known |= 1 << source
        self.rows[op] = known

    def keep(self, ops: Iterable[int]) -> None:
        """Drop the rows of all other operations."""
        self.rows = {op: self.rows[op] for op in ops if op in self.rows}

    def outside(self, row: int, ops: np.ndarray) -> np.ndarray:
        """Positions of the operations that are not in a row."""
        if not len(ops):
            return ops
        row_bytes = np.frombuffer(row.to_bytes(self.bytes, "little"), np.uint8)
        bits = np.unpackbits(row_bytes, bitorder="little")
        return (bits[ops] == 0).nonzero()[0]
