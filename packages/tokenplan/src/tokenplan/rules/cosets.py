"""XOR-swizzled parts: cosets of a vector space over F₂ that do not meet."""

from __future__ import annotations

from collections.abc import Iterator

from tokenplan.footprints import Trips
from tokenplan.model import Access
from tokenplan.rules.pair import Answer, Pair, Removed

NAME = "cosets"
SAYS = "address bits that no loop and no step changes keep them apart"


def decide(pair: Pair) -> Answer:
    """Removed where the bytes of both are cosets base ⊕ span(bits), and these do not meet."""
    a, b = coset(pair.a, pair.trips), coset(pair.b, pair.trips)
    if a is None or b is None:
        return None
    return None if _reduce(a[0] ^ b[0], _basis([*a[1], *b[1]])) == 0 else Removed(pair.assumes)


def coset(access: Access, trips: Trips) -> tuple[int, list[int]] | None:
    """Base and bits of the bytes over all iterations, after the swizzle; None if they are no coset.

    They are one where counts and strides are powers of two that share no address bit.
    """
    taken, bits = access.offset.constant, []
    if taken < 0:
        return None
    for count, stride in _factors(access, trips):
        if count & (count - 1) or stride <= 0:
            return None
        for bit in range(count.bit_length() - 1):
            step = stride << bit
            if step & taken:
                return None
            taken |= step
            bits.append(access.swizzle.linear(step))
    return access.swizzle(access.offset.constant), bits


def _factors(access: Access, trips: Trips) -> Iterator[tuple[int, int]]:
    yield access.width, 1
    yield from ((n, s) for n, s in zip(access.shape, access.strides, strict=True) if n > 1)
    for name, step in access.offset.terms:
        if trips[name][1]:
            yield trips[name][1] + 1, step


def _basis(vectors: list[int]) -> list[int]:
    """Independent vectors of the same span, each with a highest bit of its own."""
    basis: list[int] = []
    for vector in vectors:
        vector = _reduce(vector, basis)
        if vector:
            basis.append(vector)
            basis.sort(reverse=True)
    return basis


def _reduce(vector: int, basis: list[int]) -> int:
    for other in basis:
        vector = min(vector, vector ^ other)
    return vector
