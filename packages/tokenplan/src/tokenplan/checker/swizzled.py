"""Addresses whose bits are flipped by other bits of theirs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tokenplan.checker.json_values import Value


@dataclass(frozen=True, slots=True)
class Swizzle:
    """The byte address a lies at constant ^ (columns[k] for every bit k of a), bit by bit.

    Bits that have no column stay.
    """

    columns: tuple[int, ...]
    constant: int

    def __call__(self, addresses: np.ndarray) -> np.ndarray:
        moved = addresses >> len(self.columns) << len(self.columns)
        for bit, column in enumerate(self.columns):
            moved = moved ^ ((addresses >> bit & 1) * column)
        return moved ^ self.constant


def read_swizzle(given: Value) -> Swizzle:
    """The swizzle that a plan file writes; an invertible one, by its shape."""
    made = given.fields("columns constant")
    columns = made["columns"].integers(0)
    if len(columns) > 60:
        raise made["columns"].wrong("more than 60 bits")
    for bit, column in enumerate(columns):
        if column.bit_length() != bit + 1:
            raise made["columns"].wrong(f"column {bit} has not bit {bit} as its highest")
    return Swizzle(columns, made["constant"].integer(0))
