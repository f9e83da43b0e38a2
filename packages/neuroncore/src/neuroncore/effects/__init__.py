"""What instructions touch: as their records declare it, and as bytes once operands are known."""

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
