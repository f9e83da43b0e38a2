"""Which bytes an access touches, over the iterations of its loops."""

from tokenplan.footprints.levels import Level, Trips, digits_of, levels_of, linear

__all__ = ["Level", "Trips", "digits_of", "levels_of", "linear"]
