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
from tokenplan.footprints.still import digits_at, values_at
from tokenplan.footprints.values import Values, least_common, values_of

__all__ = [
    "Level",
    "Trips",
    "Values",
    "blurred",
    "digits_at",
    "digits_of",
    "least_common",
    "levels_of",
    "linear",
    "radices",
    "values_at",
    "values_of",
]
