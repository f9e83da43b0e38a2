"""XOR-swizzled parts: cosets of a vector space over F₂ that are disjoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest

from tokenplan.footprints import Trips
from tokenplan.kernel.model import Access
from tokenplan.rules.pair import Answer, Pair, Removed

NAME = "cosets"
SAYS = "they differ in address bits that no loop and no step changes"


def decide(pair: Pair) -> Answer:
    """Removed where the bytes of both are cosets base ⊕ span(bits), and these are disjoint."""
    a, b = coset(pair.a, pair.trips), coset(pair.b, pair.trips)
    if a is None or b is None:
        return None
    return None if reduce(a[0] ^ b[0], basis([*a[1], *b[1]])) == 0 else Removed(pair.assumes)


def are_disjoint(pair: Pair, outer: int) -> bool:
    """Whether no byte of an iteration is one of a later iteration of shared loop `outer`, those
    around it being the same (outer = number of shared loops: all the same).

    Of two numbers, the later one has the highest bit in which they differ: for each bit of the
    loop it is looked whether that bit, those above in both and those below in either can bring the
    two together. Counts are rounded up to powers of two.
    """
    ends = [_vectors(access, pair.trips) for access in (pair.a, pair.b)]
    if None in ends:
        return False
    a, b = (end for end in ends if end is not None)
    free = [*a.pop("", ()), *b.pop("", ())]
    difference = pair.a.swizzle(pair.a.offset.constant) ^ pair.b.swizzle(pair.b.offset.constant)
    for loop in {*a, *b} - {*pair.shared[: outer + 1]}:
        free += [*a.get(loop, ()), *b.get(loop, ())]
    for loop in pair.shared[:outer]:
        free += _same(loop, a, b)
    if outer == len(pair.shared):
        return reduce(difference, basis(free)) != 0
    loop = pair.shared[outer]
    one, other = a.get(loop, []), b.get(loop, [])
    for bit in range(max(0, pair.trips[loop][1]).bit_length()):
        above = _same(loop, {loop: one[bit + 1 :]}, {loop: other[bit + 1 :]})
        differ = difference ^ (other[bit] if other else 0)
        if reduce(differ, basis([*free, *above, *one[:bit], *other[:bit]])) == 0:
            return False
    return True


def _same(loop: str, a: Mapping[str, list[int]], b: Mapping[str, list[int]]) -> list[int]:
    """Effects of the bits of a loop that are the same for both ends."""
    return [x ^ y for x, y in zip_longest(a.get(loop, ()), b.get(loop, ()), fillvalue=0)]


def _vectors(access: Access, trips: Trips) -> dict[str, list[int]] | None:
    """Loop (or "": the box itself) → what each bit of its iteration flips in the address.

    None where additions carry, so that bits do more than flip.
    """
    taken, found = access.offset.constant, {"": []}
    if taken < 0:
        return None
    box = [(access.width, 1), *zip(access.shape, access.strides, strict=True)]
    moves = [("", n, step) for n, step in box if n > 1]
    moves += [(name, trips[name][1] + 1, step) for name, step in access.offset.terms]
    for name, count, step in moves:
        if step <= 0:
            return None
        for bit in range(max(0, count - 1).bit_length()):
            if taken & step << bit:
                return None
            taken |= step << bit
            found.setdefault(name, []).append(access.swizzle.linear(step << bit))
    return found


def coset(access: Access, trips: Trips) -> tuple[int, list[int]] | None:
    """Base and bits of the bytes over all iterations, after the swizzle; None if they are not a
    coset.

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


def basis(vectors: list[int]) -> list[int]:
    """Independent vectors of the same span, each with a highest bit of its own."""
    found: list[int] = []
    for vector in vectors:
        vector = reduce(vector, found)
        if vector:
            found.append(vector)
            found.sort(reverse=True)
    return found


def reduce(vector: int, basis: list[int]) -> int:
    """The least vector that differs from `vector` by a sum of `basis`: 0 for one of the span."""
    for other in basis:
        vector = min(vector, vector ^ other)
    return vector
