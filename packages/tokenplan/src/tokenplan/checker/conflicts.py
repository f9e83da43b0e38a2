"""All pairs of instances whose order matters, as one bitset of earlier ones per instance."""

from __future__ import annotations

import numpy as np

from tokenplan.checker.memory import Memory

_BEFORE = {"R": "WA", "W": "WRA", "A": "WR"}
"""Mode -> the modes of earlier accesses to the same bytes that do not commute with it."""


def conflicts(memory: Memory) -> list[int]:
    """Per instance the bitset of earlier instances that it must come after."""
    seen: dict[str, list[int]] = {mode: [0] * len(memory.owners) for mode in "RWA"}
    found = []
    for instance, touches in enumerate(memory.touches):
        earlier = 0
        for mode, cells in touches:
            for other in _BEFORE[mode]:
                bits = seen[other]
                for cell in cells:
                    earlier |= bits[cell]
        for mode, cells in touches:
            bits, mine = seen[mode], 1 << instance
            for cell in cells:
                bits[cell] |= mine
        found.append(earlier)
    return found


def members(bits: int) -> list[int]:
    """The positions of the ones, lowest first."""
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found


def bitset(positions: np.ndarray, size: int) -> int:
    """The integer with ones at these positions, all below `size`."""
    flags = np.zeros(size, np.uint8)
    flags[positions] = 1
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")
