"""What instructions touch: as their records declare it, and as bytes once operands are known."""

from neuroncore.effects.address import absolute
from neuroncore.effects.declared import Effect, Rows, Touch, accumulates, reads, register, writes
from neuroncore.effects.footprint import Footprint, footprint
from neuroncore.effects.touched import Touched, conflict, footprint_of, touched

__all__ = [
    "Effect",
    "Footprint",
    "Rows",
    "Touch",
    "Touched",
    "absolute",
    "accumulates",
    "conflict",
    "footprint",
    "footprint_of",
    "reads",
    "register",
    "touched",
    "writes",
]
