"""Bars: the micro-ops that were played, their kinds, and the causes of their waits."""

from __future__ import annotations

from typing import NamedTuple

WEIGHTS, MULTIPLY, PASS, TABLE, TRANSFER = range(5)
KINDS = ("load_stationary", "multiply_moving", "pass", "table_load", "transfer")

DATA, SPACE, LANE, RESOURCE = range(4)
CAUSES = ("data", "buffer", "engine", "resource")
"""Why an instruction did not start earlier: its operands are being made, its destination is still
in use, its engine is busy, a port or descriptor generator or queue is."""

NO_BAR = -1
"""The number of no bar."""


class Played(NamedTuple):
    """One micro-op in ticks: its engine is occupied from start to free, its result there at end."""

    site: int
    lane: int
    kind: int
    start: int
    free: int
    end: int
    cause: int
    """The bar it waited for (NO_BAR: none), skipped bars counted."""
    why: int
