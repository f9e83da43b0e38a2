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
    for instance, accesses in enumerate(memory.accesses):
        earlier = 0
        for mode, cells in accesses:
            for other in _BEFORE[mode]:
                bits = seen[other]
                for cell in cells:
                    earlier |= bits[cell]
        for mode, cells in accesses:
            bits, mine = seen[mode], 1 << instance
            for cell in cells:
                bits[cell] |= mine
        found.append(earlier)
    for pair in memory.aliases:
        found = [a | b for a, b in zip(found, _aliased(memory, pair), strict=True)]
    return found


def _aliased(memory: Memory, pair: tuple[str, ...]) -> list[int]:
    """The same for two buffers that may share bytes, any with any: all but two reads conflict."""
    seen = {(name, reads): 0 for name in pair for reads in (True, False)}
    found = []
    for instance, accesses in enumerate(memory.accesses):
        here = {
            (memory.owners[cells[0]][0].id, mode == "R") for mode, cells in accesses if cells
        } & seen.keys()
        earlier = 0
        for name, reads in here:
            (other,) = set(pair) - {name}
            earlier |= seen[other, False] | (0 if reads else seen[other, True])
        for access in here:
            seen[access] |= 1 << instance
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
