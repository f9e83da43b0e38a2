"""Footprints: the bytes of an access over the iterations of its loops."""

from tokenplan.footprints.digit_values import Values, least_common, values_of
from tokenplan.footprints.digits import (
    Trips,
    blurred,
    digits_of,
    levels_of,
    linear,
    radices,
)

__all__ = [
    "Trips",
    "Values",
    "blurred",
    "digits_of",
    "least_common",
    "levels_of",
    "linear",
    "radices",
    "values_of",
]
