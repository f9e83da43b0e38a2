"""Bytes that instructions access: as their records declare them, and for known operands."""

from neuroncore.effects.address import absolute
from neuroncore.effects.declared import Effect, Rows, Touch, accumulates, reads, register, writes
from neuroncore.effects.footprint import Footprint, footprint

__all__ = [
    "Effect",
    "Footprint",
    "Rows",
    "Touch",
    "absolute",
    "accumulates",
    "footprint",
    "reads",
    "register",
    "writes",
]
