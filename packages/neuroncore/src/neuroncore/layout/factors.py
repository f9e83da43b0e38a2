"""One dimension as mixed-radix digits: (size, stride) factors, the slowest first.

Index i is written in digits of these sizes, the last one fastest; its address is Σ stride · digit.
A plain dimension has one factor, one of size 1 has none, a tiled one has several.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod

from neuroncore.layout.swizzle import PLAIN, Swizzle

Factors = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class FactoredMap:
    """swizzle(offset + Σ over dimensions of Σ stride · digit): the fields of a Layout."""

    dims: tuple[Factors, ...]
    offset: int = 0
    swizzle: Swizzle = PLAIN

    @property
    def shape(self) -> tuple[int, ...]:
        """Indices per dimension."""
        return tuple(map(extent, self.dims))

    @property
    def size(self) -> int:
        """All indices."""
        return prod(self.shape)


def extent(factors: Factors) -> int:
    """How many indices there are."""
    return prod(n for n, _ in factors)


def merged(factors: Iterable[tuple[int, int]]) -> Factors:
    """The only way to write the same function with as few factors as possible.

    >>> merged([(2, 32), (1, 7), (4, 8)])
    ((8, 8),)
    """
    kept: list[tuple[int, int]] = []
    for size, stride in factors:
        if size == 1:
            continue
        if kept and kept[-1][1] == size * stride:
            kept[-1] = (kept[-1][0] * size, stride)
        else:
            kept.append((size, stride))
    return tuple(kept)


def address(factors: Factors, index: int) -> int:
    """Σ stride · digit of `index`."""
    total = 0
    for size, stride in reversed(factors):
        index, digit = divmod(index, size)
        total += digit * stride
    return total


def cut(factors: Factors, inner: int) -> tuple[Factors, Factors]:
    """`factors` as factors of index // inner and factors of index % inner.

    Raises ValueError where a boundary of two factors lies askew.
    """
    outer, fast, left = list(factors), [], inner
    while left > 1 and outer:
        size, stride = outer.pop()
        if left % size == 0:
            fast.append((size, stride))
            left //= size
        elif size % left == 0:
            fast.append((left, stride))
            outer.append((size // left, stride * left))
            left = 1
        else:
            break
    if left > 1:
        raise ValueError(
            f"tiles of {inner} do not divide a dimension of {extent(factors)} indices in factors "
            f"{[n for n, _ in factors]}; expected a product of its last factors"
        )
    return tuple(outer), tuple(reversed(fast))


def part(factors: Factors, start: int, count: int, step: int) -> tuple[int, Factors]:
    """Indices start, start + step, …: the address of the first, and factors from there.

    Raises ValueError where these are not the digits of one counter.
    """
    first = address(factors, start)
    if count == 1:
        return first, ()
    *slow, (size, stride) = factors
    outer, last = tuple(slow), start + (count - 1) * step
    if not outer or start // size == last // size:
        return first, ((count, stride * step),)
    if step % size == 0:
        return first, part(outer, start // size, count, step // size)[1]
    per_block, rest = divmod(size, step)
    if rest == 0 and start % size < step and count % per_block == 0:
        blocks = part(outer, start // size, count // per_block, 1)[1]
        return first, (*blocks, (per_block, stride * step))
    raise ValueError(
        f"indices {start}:{last + 1}:{step} cut through blocks of {size}; "
        "expected whole blocks, or a part of one"
    )


def through(
    outer: Factors, inner: Sequence[Factors], offset: int
) -> tuple[int, tuple[Factors, ...]]:
    """Composition: `inner` gives indices, from `offset` on, of the dimension `outer`.

    Gives the address of the first, and factors from there. Raises ValueError where a sum of inner
    digits would carry in outer's, or leaves them.
    """
    digits = [digit for factors in inner for digit in factors]
    lowest = offset + sum((n - 1) * min(0, s) for n, s in digits)
    if not 0 <= lowest < extent(outer):
        raise ValueError(f"index {lowest} is outside the {extent(outer)} of the outer layout")
    room, left = [], lowest
    for size, _ in reversed(outer):
        left, digit = divmod(left, size)
        room.insert(0, size - 1 - digit)
    first, dims = address(outer, lowest), []
    for factors in inner:
        found: list[tuple[int, int]] = []
        for size, stride in reversed(factors):
            pieces = _digit(outer, size, abs(stride), room)
            if stride < 0:  # counted down from its highest
                first += sum((n - 1) * s for n, s in pieces)
                pieces = [(n, -s) for n, s in pieces]
            found += pieces
        dims.append(merged(reversed(found)))
    return first, tuple(dims)


def _digit(outer: Factors, size: int, stride: int, room: list[int]) -> list[tuple[int, int]]:
    """One inner digit in outer's digits, fastest first; takes what it needs from `room`."""
    found: list[tuple[int, int]] = []
    if stride == 0:
        return [(size, 0)]
    count, left = size, stride  # what is still to be placed
    for at in range(len(outer) - 1, -1, -1):
        radix, step = outer[at]
        if left % radix == 0 and at:
            left //= radix
            continue
        fits = count if (count - 1) * left < radix else radix // left if radix % left == 0 else 0
        if fits < 1 or count % fits:
            break
        room[at] -= (fits - 1) * left
        found.append((fits, step * left))
        count, left = count // fits, 1
        if count == 1:
            break
    if count > 1 or min(room) < 0:
        raise ValueError(
            f"{size} steps of {stride} do not stay in digits of sizes {[n for n, _ in outer]}; "
            "expected a step that divides them, and sums that neither carry nor leave them"
        )
    return found
