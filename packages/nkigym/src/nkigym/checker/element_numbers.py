"""Numbers of elements: equal for equal values up to the order of sums, else equal by chance alone.

64 bits each. Sums add modulo 2^64, everything else mixes. -0 changes no sum; +0 does, as -0 + 0 is
+0, but not a second time: the lowest bit is for +0 as a term.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

Numbers = np.ndarray
"""uint64, one per element."""
ZERO = np.uint64(1)
"""The number of +0, a bit that all others have clear and that a sum has of any of its terms."""

ODD = np.uint64(0x9E3779B97F4A7C15)
SHIFTS = (np.uint64(31), np.uint64(29))


def seed(*what: Any) -> np.uint64:
    """A number for what something is."""
    digest = hashlib.blake2b(repr(what).encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little")) & ~ZERO


def mixed(*parts: Numbers | np.uint64) -> Numbers:
    """A number per element from the numbers of all parts, in their order."""
    total = np.uint64(0)
    with np.errstate(over="ignore"):
        for part in parts:
            total = (total ^ part) * ODD
            for shift in SHIFTS:
                total = (total ^ (total >> shift)) * ODD
    return np.asarray(total & ~ZERO)


def added(one: Numbers, other: Numbers) -> Numbers:
    """The numbers of sums."""
    with np.errstate(over="ignore"):
        total = (one & ~ZERO) + (other & ~ZERO)
    return np.asarray(total | ((one | other) & ZERO))


def number(value: float) -> Numbers:
    """The number of a scalar: of -0, which changes no sum, 0."""
    if value:
        return np.asarray(seed("number", value))
    return np.asarray(np.uint64(0) if np.signbit(value) else ZERO)


def places(shape: tuple[int, ...]) -> Numbers:
    """0, 1, ... for the elements of a tile in their order."""
    return np.arange(int(np.prod(shape)), dtype=np.uint64).reshape(shape)
