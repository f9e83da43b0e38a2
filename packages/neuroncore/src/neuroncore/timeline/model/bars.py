"""Bars: the micro-ops that were played, their kinds, and the causes of their waits."""

from __future__ import annotations

WEIGHTS, MULTIPLY, PASS, TABLE, TRANSFER = range(5)
KINDS = ("load_stationary", "multiply_moving", "pass", "table_load", "transfer")

DATA, SPACE, LANE, RESOURCE = range(4)
CAUSES = ("data", "buffer", "engine", "resource")
"""Why an instruction did not start earlier: its operands are being made, its destination is still
in use, its engine is busy, a port or descriptor generator or queue is."""

NO_BAR = -1
"""The number of no bar."""
