"""Where segments of equal numbers begin and end."""

from __future__ import annotations

import itertools

import numpy as np
from wide import Array


def bounds_of_sorted(segment_ids: Array) -> Array:
    """(1, n) → (1, 2, n): begin and end (exclusive) of each one's run, after sorting.

    Id 0 is padding: it begins at n and ends at -1.
    """
    numbers = sorted(segment_ids[0].tolist())
    bounds: list[tuple[int, int]] = []
    for number, run in itertools.groupby(numbers):
        length, begin = len(list(run)), len(bounds)
        pair = (begin, begin + length) if number else (len(numbers), -1)
        bounds += [pair] * length
    return np.asarray(bounds, np.float64).T[None]
