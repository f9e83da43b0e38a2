"""Which bytes an access touches, over the iterations of its loops."""

from tokenplan.footprints.levels import (
    Level,
    Trips,
    blurred,
    digits_of,
    levels_of,
    linear,
    radices,
)

__all__ = ["Level", "Trips", "blurred", "digits_of", "levels_of", "linear", "radices"]
