"""Residue classes: {constant + divisor · n} for all integers n."""

from __future__ import annotations


def reaches(constant: int, divisor: int, low: int, stop: int) -> bool:
    """Whether constant + divisor · n is in [low, stop) for some integer n.

    >>> reaches(1, 4, 2, 5), reaches(1, 4, 2, 6), reaches(1, 0, 0, 2)
    (False, True, True)
    """
    if not divisor:
        return low <= constant < stop
    return low + (constant - low) % divisor < stop
