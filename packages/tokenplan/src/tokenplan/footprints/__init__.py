"""Which bytes an access touches, over the iterations of its loops."""

from tokenplan.footprints.levels import Level, levels_of, whole_reach

__all__ = ["Level", "levels_of", "whole_reach"]
